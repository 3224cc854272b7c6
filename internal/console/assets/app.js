// The frame: routes, who is here, whether it is live, the colour scheme.
import {h, put, text, cls, safe, count, span, say} from './dom.js';
import {store, connect, changed, notify, login, logout, many} from './store.js';
import {recolour, redraw} from './charts.js';
import {lockAll, result, button, act, dialog} from './parts.js';
import {overview} from './overview.js';
import {container} from './container.js';
import {deadLetters} from './deadletters.js';
import {events} from './events.js';
import {instances} from './instances.js';

const $ = (id) => document.getElementById(id);
let view = null, route = '';

function go() {
  const hash = location.hash.replace(/^#/, '') || '/';
  if (hash === route) return;
  route = hash;
  const [, name, a, b] = hash.split('?')[0].split('/').map(decodeURIComponent);
  view?.close?.();
  view = name === 'c' ? container(a, b) : name === 'dead-letters' ? deadLetters(a, b) : name === 'events' ? events() : name === 'instances' ? instances() : overview();
  put($('main'), view.el);
  for (const l of document.querySelectorAll('nav a')) {
    const here = l.dataset.view === (name || 'overview') || name === 'c' && l.dataset.view === 'overview';
    if (here) l.setAttribute('aria-current', 'page');
    else l.removeAttribute('aria-current');
  }
  window.scrollTo(0, 0);
  draw();
}

function draw() {
  if (document.hidden) return;
  frame();
  if (store.denied || !view) return;
  view.draw();
  lockAll();
}

let was = {link: '', levels: new Map()};
function frame() {
  const s = store.session, link = $('link');
  cls(link, `link ${store.link}`);
  text(link.querySelector('.glyph'), {live: '●', stale: '▲', connecting: '○'}[store.link]);
  const stale = store.staleSince ? new Date(store.staleSince).toLocaleTimeString([], {hour12: false}) : '';
  text(link.querySelector('.word'), {live: 'live', stale: `stale since ${stale}, reconnecting`, connecting: 'connecting'}[store.link]);
  document.body.classList.toggle('stale', store.link !== 'live');
  $('nav-instances').hidden = !many();
  text($('instance'), many() ? `${store.instances.size} instances` : s?.instance || '');
  const need = [...store.containers.values()].filter((c) => c.level === 'problem').length;
  document.title = `${need ? `▲ ${need} ` : ''}${view?.title?.() || 'Overview'} – Longshore`;
  const dead = [...store.containers.values()].reduce((n, c) => n + (c.dead || 0), 0);
  $('count-dead').hidden = !dead;
  text($('count-dead'), count(dead));
  drawWho(s);
  drawFaults();
  alert();
  speak();
}

let whoShown = '';
function drawWho(s) {
  const key = `${s?.role} ${s?.name} ${store.denied}`;
  if (key === whoShown) return;
  whoShown = key;
  if (s?.role === 'operator' || s?.role === 'viewer') {
    put($('who'), h('span', {class: 'role'}, s.role, ' ', h('b', {}, safe(s.name, 40))), h('button', {type: 'button', class: 'quiet', onclick: () => logout().catch(() => {})}, 'Log out'));
  } else if (!store.denied) {
    put($('who'), h('button', {type: 'button', onclick: () => ($('alert').hidden = true, askToken())}, 'Log in'));
  } else put($('who'));
  if (store.denied) put($('main'), loginForm('A token is needed', 'This page shows names and numbers to processes of its own host only. Paste the token of an operator or a viewer.'));
  else if ($('main').querySelector('.login') && view) put($('main'), view.el);
}

function loginForm(title, why, done) {
  const out = result();
  const input = h('input', {type: 'password', autocomplete: 'current-password', required: true, 'aria-label': 'Token'});
  const form = h('form', {class: 'login'}, h('h1', {}, title), h('p', {}, why), h('label', {}, 'Token', input), h('div', {class: 'row end'}, done && h('button', {type: 'button', onclick: done}, 'Cancel'), h('button', {type: 'submit', class: 'primary'}, 'Log in')), out,
    h('p', {class: 'muted'}, 'On the service’s own host it is in a file that only its user can read; see ', h('code', {}, 'longshore ctl --help'), '. It is traded for a cookie and kept nowhere on this page.'));
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    try {
      await login({token: input.value.trim()});
      whoShown = '';
      done?.();
      notify();
    } catch (err) {
      out.bad(err);
    }
    input.value = '';
  });
  return form;
}

function askToken() {
  const d = dialog('Log in', loginForm('Log in', 'Ids, keys and texts need a viewer’s token, changes an operator’s.', () => d.close()));
}

// What is true of everything on the page: it is stale, or an instance was restarted.
function alert() {
  const el = $('alert');
  let t = '';
  if (store.link === 'stale') t = `The connection is lost: everything below is as it was ${span((Date.now() - store.staleSince) / 1000)} ago. Nothing can be changed until it is back.`;
  else {
    const r = [...store.instances.values()].filter((i) => i.restarted && Date.now() - i.restarted < 60e3);
    if (r.length) t = `${r.map((i) => safe(i.instance, 60)).join(', ')} was restarted ${span((Date.now() - r[0].restarted) / 1000)} ago: its counters began at 0.`;
  }
  el.hidden = !t;
  cls(el, store.link === 'stale' ? 'alert bad' : 'alert');
  text(el, t);
}

// speak lets a screen reader hear changes of state, and nothing else.
function speak() {
  const said = [];
  if (was.link && was.link !== store.link) said.push({live: was.link === 'stale' ? 'Live again' : '', stale: 'Connection lost, values are stale'}[store.link] || '');
  was.link = store.link;
  for (const [id, c] of store.containers) {
    const now = `${c.state} ${c.level}`;
    if (was.levels.has(id) && was.levels.get(id) !== now) said.push(`${safe(c.name, 60)} is ${c.state}${c.level === 'problem' ? ' and needs a person' : ''}`);
    was.levels.set(id, now);
  }
  if (said.filter(Boolean).length) say(said.filter(Boolean).join('. '));
}

// Buttons of the service itself; in the demo those that cause faults.
let actionsShown = '';
function drawFaults() {
  const key = JSON.stringify(store.actions);
  if (key === actionsShown) return;
  actionsShown = key;
  const out = result(), el = $('faults');
  el.hidden = !store.actions.length;
  put(el, store.actions.length && h('span', {class: 'title'}, store.actions[0].group || 'Actions'),
    store.actions.map((a) => {
      const b = button(a.label, () => act(out, 'POST', `actions/${encodeURIComponent(a.name)}`, {}, (r) => safe(r.text, 200)));
      b.why_ = a.help;
      return b;
    }), out);
}

const themes = ['system', 'light', 'dark'];
function theme(name) {
  if (name === 'system') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.setAttribute('data-theme', name);
  $('theme').setAttribute('aria-label', `Colour scheme: ${name === 'system' ? 'as the system' : name}`);
  $('theme').title = `Colour scheme: ${name}`;
  recolour();
  redraw();
}
let chosen = 'system';
try {
  chosen = localStorage.getItem('longshore-theme') || 'system';
} catch { /* not kept then */ }
theme(themes.includes(chosen) ? chosen : 'system');
$('theme').addEventListener('click', () => {
  chosen = themes[(themes.indexOf(chosen) + 1) % 3];
  theme(chosen);
  try {
    localStorage.setItem('longshore-theme', chosen);
  } catch { /* not kept then */ }
  notify();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (recolour(), redraw()));

addEventListener('keydown', (e) => {
  const typing = e.target.closest?.('input, select, textarea, dialog');
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === '/') {
    e.preventDefault();
    view?.focusFilter?.();
  } else if (e.key === '?') help();
  else if (e.key === 'o') location.hash = '#/';
  else if (e.key === 'd') location.hash = '#/dead-letters';
  else if (e.key === 'e') location.hash = '#/events';
});

function help() {
  const d = dialog('Keys', h('h2', {}, 'Keys'),
    h('dl', {class: 'keys'}, [['/', 'filter'], ['o d e', 'overview, dead letters, events'], ['Tab, Enter', 'everything else'], ['?', 'this list']].map(([k, t]) => [h('dt', {}, k), h('dd', {}, t)])),
    h('div', {class: 'row end'}, h('button', {type: 'button', onclick: () => d.close()}, 'Close')));
}

document.addEventListener('visibilitychange', () => notify());
addEventListener('hashchange', go);
addEventListener('resize', redraw);
document.querySelector('.skip').addEventListener('click', (e) => {
  e.preventDefault();
  $('main').focus();
});
changed(draw);

// A link with a code logs in once; the code leaves the address at once.
const code = /^#login=([A-Z0-9]+)$/.exec(location.hash)?.[1];
if (code) history.replaceState(null, '', location.pathname);
go();
if (code) login({code}).catch(() => connect());
else connect();
