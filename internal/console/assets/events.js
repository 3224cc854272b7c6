// What happened, the newest first.
import {h, put, list, time, safe} from './dom.js';
import {store, many} from './store.js';
import {because} from './parts.js';

const groups = {
  'Connections': ['state', 'subscribed', 'down', 'standby', 'active', 'declared', 'drained'],
  'Scaling': ['scaled'],
  'Operators': ['operator'],
  'Holds and alarms': ['held', 'released', 'blocked', 'unblocked', 'parking-full', 'lane-full', 'lane-blocked', 'stuck', 'unstuck', 'skipped', 'notice'],
  'Failed messages': ['failed', 'discarded', 'dead-lettered', 'dead-letter-failed', 'delay-cut', 'given-back', 'lost', 'settle-failed'],
};
const bad = new Set(['down', 'stuck', 'dead-letter-failed', 'parking-full', 'blocked', 'settle-failed', 'lane-blocked']);
const good = new Set(['subscribed', 'unstuck', 'unblocked', 'released', 'active']);

// plain is a text without what the other columns say.
const plain = (t) => String(t || '').replace(/^longshore: (handle|decode) "[^"]*" message \S+ (\(attempt \d+ of \d+\))?: /, '');

export const line = (el, e) => {
  const what = [e.kind === 'scaled' && e.from !== undefined ? `${e.from || 0} → ${e.to || 0} workers${e.reason ? ': ' + because(e.reason) : ''}` : safe(plain(e.text), 400)];
  if (e.error && !String(e.text).includes(e.error)) what.push(safe(e.error, 300));
  if (e.reason && e.kind !== 'scaled' && !String(e.text).includes(e.reason)) what.push(`(${safe(e.reason, 200)})`);
  put(el, time(e.time), h('span', {class: `kind ${bad.has(e.kind) ? 'bad' : good.has(e.kind) ? 'good' : ''}`}, e.kind),
    h('span', {class: 'of'}, safe(e.container, 60), many() && h('small', {}, ' ' + safe(e.instance, 40))),
    h('span', {class: 'what'}, what.filter(Boolean).join(' '), e.by && h('b', {}, ` by ${safe(e.by, 60)}`),
      (e.message_id || e.key) && h('small', {}, ' ', [e.message_id && `message ${safe(e.message_id, 80)}`, e.key && `key ${safe(e.key, 80)}`, e.attempt && `attempt ${e.attempt}`].filter(Boolean).join(', '))));
};

export function events() {
  const container = h('select', {'aria-label': 'Container', onchange: draw});
  const kind = h('select', {'aria-label': 'Kind', onchange: draw}, h('option', {value: 'rare'}, 'All but single messages'), h('option', {value: ''}, 'All kinds'), Object.keys(groups).map((g) => h('option', {value: g}, g)));
  const find = h('input', {type: 'search', placeholder: 'Find in the texts', 'aria-label': 'Find', oninput: draw});
  const rows = h('ol', {class: 'events', 'aria-label': 'Events, the newest first'});
  const empty = h('p', {class: 'empty', hidden: true}, 'Nothing has happened that matches. Events of the last 15 minutes or so are kept.');
  const root = h('div', {}, h('h1', {}, 'Events'), h('div', {class: 'bar'}, container, kind, find), rows, empty);
  let names = '';
  function draw() {
    const all = [...new Set([...store.containers.values()].map((c) => c.name))].sort();
    if (names !== all.join('\n')) {
      names = all.join('\n');
      const was = container.value;
      put(container, h('option', {value: ''}, 'All containers'), all.map((n) => h('option', {value: n}, safe(n, 60))));
      container.value = was;
    }
    const q = find.value.trim().toLowerCase(), kinds = groups[kind.value], rare = kind.value === 'rare';
    const shown = [];
    for (let i = store.events.length - 1; i >= 0 && shown.length < 300; i--) {
      const e = store.events[i];
      if (container.value && e.container !== container.value || kinds && !kinds.includes(e.kind) || rare && groups['Failed messages'].includes(e.kind)) continue;
      if (q && !`${e.text} ${e.error} ${e.reason} ${e.by} ${e.key} ${e.message_id}`.toLowerCase().includes(q)) continue;
      shown.push(e);
    }
    list(rows, shown, (e) => `${e.instance}/${e.id}`, (e) => {
      const el = h('li', {});
      line(el, e);
      return el;
    });
    empty.hidden = shown.length > 0;
  }
  return {el: root, draw, focusFilter: () => find.focus(), title: () => 'Events'};
}
