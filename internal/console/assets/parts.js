// Parts that several views share.
import {h, put, text, safe, attr, cls, ago, span} from './dom.js';
import {store, call, of, operator, notify} from './store.js';

const words = {running: 'running', recovering: 'recovering', paused: 'paused', starting: 'starting', draining: 'draining', stopped: 'stopped', new: 'not started'};
const stateGlyphs = {paused: '‖', recovering: '↻', starting: '◌', draining: '▽', stopped: '■', new: '○', running: '●'};

// badge is a state as a glyph and a word, never a colour alone.
export const badge = () => h('span', {class: 'badge'}, h('span', {class: 'glyph', 'aria-hidden': 'true'}), ' ', h('span', {class: 'word'}));
export function setBadge(el, c) {
  cls(el, `badge is-${c.level} state-${c.state}`);
  const problem = c.level === 'problem' && c.state === 'running';
  text(el.firstChild, problem ? '▲' : c.level === 'notice' && c.state === 'running' ? '◆' : stateGlyphs[c.state] || '●');
  const since = c.limited?.since && (c.state === 'paused' || c.state === 'recovering') ? ' ' + ago(c.limited.since) : '';
  text(el.lastChild, (c.standby ? 'stands by' : words[c.state] || c.state) + since);
}

const what = {state: 'It does not run', hold: 'Held by a middleware', broker: 'Broker lost', standby: 'Standby', partitions: 'No partitions', permits: 'Throttled', rate: 'Throttled', parking: 'Parking is full',
  'dead letter': 'Dead letters refused', 'stuck partition': 'Partition stands still', 'blocked keys': 'Blocked keys', alarm: 'Broker alarm', stuck: 'Handlers hang', releases: 'Messages go round',
  'hot key': 'Hot key', lanes: 'Few keys', knee: 'Downstream saturated', 'slow handlers': 'Slow downstream', 'never received': 'Nothing ever came', failures: 'Most calls fail', window: 'Memory limit', max: 'All workers busy', policy: 'Scaling'};
export const headline = (c) => c.state === 'paused' && c.limited?.by === 'state' ? 'Paused' : what[c.limited?.by] || '';

// sentence is what limits a container, with what a caller without a token may see.
export function sentence(c) {
  let t = c.limited?.text || '';
  const help = c.limited?.do;
  if (help && t.endsWith(help)) t = t.slice(0, -help.length).replace(/[;,.]\s*$/, ''); // it has a place of its own
  if (t) return safe(t, 600) + nextAttempt(c);
  return c.limited?.since ? `since ${ago(c.limited.since)}; log in to see why` : 'log in to see why';
}
// nextAttempt is when a recovering container tries again.
function nextAttempt(c) {
  if (c.state !== 'recovering') return '';
  const left = c.next_attempt ? (new Date(c.next_attempt) - Date.now()) / 1000 : 0;
  return left > 0 ? `; next attempt in ${span(left)}` : '; trying now';
}
// limited says who set a limit by hand, where something else is what limits the container now:
// it may have been forgotten.
export function limited(c) {
  const o = c.throttle?.operator || c.throttle?.fleet;
  if (!o || c.limited?.by === 'permits' || c.limited?.by === 'rate') return '';
  return `A limit is set${c.throttle.operator ? '' : ' on the fleet'}: ${[o.permits ?? null, o.rate ?? null].map((n, i) => n === null ? '' : i ? `${n} per second` : `${n} at once`).filter(Boolean).join(', ')}` +
    `${o.by ? ` by ${safe(o.by, 60)}` : ''}${o.reason ? ` (${safe(o.reason, 120)})` : ''}${o.until ? `, until ${new Date(o.until).toLocaleTimeString([], {hour12: false})}` : ''}.`;
}
// The command that helps is shown where the page has no button for it.
export const advice = (c) => safe(c.limited?.do || '', 300);

// because says in words why workers were added or taken away.
const reasons = {saturated: 'all workers are busy and work waits', demand: 'the load asks for more', idle: 'the load asks for fewer', ceiling: 'a limit leaves room for fewer',
  knee: 'the last growth brought too little', 'knee was none': 'with fewer the throughput fell', 'growth made it fail': 'more calls failed after the last growth'};
export const because = (reason) => reasons[reason] || safe(reason, 80);
// scaledBy is because with the limit that was in force then, and who set it.
export function scaledBy(c, s, m) {
  if (m.reason !== 'ceiling' || !s) return because(m.reason);
  const at = Math.floor(new Date(m.at) / 1000), then = s.permits.filter((n, i) => n >= 0 && Math.abs(s.at[i] - at) <= 2), n = Math.min(...then);
  if (!then.length || n >= m.from) return because(m.reason);
  const o = c.throttle?.operator || c.throttle?.fleet, who = o && (!o.at || new Date(o.at) <= new Date(m.at)) ? `${o.by ? `, set by ${safe(o.by, 60)}` : ''}${o.reason ? ` (${safe(o.reason, 120)})` : ''}` : '';
  return `throttled to ${n} at once${who}`;
}

// result is the place beside a button for what became of it.
export function result() {
  const el = h('output', {class: 'result'});
  el.ok = (t) => {
    cls(el, 'result good');
    put(el, t);
    clearTimeout(el.timer);
    el.timer = setTimeout(() => put(el), 6000);
  };
  el.bad = (err) => {
    clearTimeout(el.timer);
    cls(el, 'result bad');
    attr(el, 'role', 'alert');
    put(el, h('code', {}, `error[${safe(err.code || 'page', 40)}]`), ' ', safe(err.message, 500), err.help && h('span', {class: 'help'}, safe(err.help, 300)));
  };
  return el;
}

// act makes a change and says what became of it.
export async function act(out, method, path, body, done) {
  put(out, 'working…');
  cls(out, 'result');
  try {
    const answer = await call(method, path, body);
    if (answer.container?.name) store.containers.set(`${answer.container.instance || ''}/${answer.container.name}`, answer.container);
    out.ok(typeof done === 'function' ? done(answer) : done || 'done');
    notify();
    return answer;
  } catch (err) {
    out.bad(err);
    return null;
  }
}

// button is one that is off while the page is not live, or the viewer may not change anything.
export function button(label, onclick, cl = '') {
  const b = h('button', {type: 'button', class: cl, onclick}, label);
  b.dataset.locks = '';
  lock(b);
  return b;
}
function lock(b) {
  const off = !!b.off_ || !operator();
  if (b.disabled !== off) b.disabled = off;
  attr(b, 'title', operator() ? b.why_ || null : store.link === 'live' ? 'Log in as an operator to use this' : 'Not live: nothing can be changed now');
}
export function enable(b, on, why) {
  b.off_ = !on;
  b.why_ = why;
  lock(b);
}
export function lockAll() {
  for (const b of document.querySelectorAll('[data-locks]')) lock(b);
}

// dialog opens a dialog; it leaves the page when it is closed.
export function dialog(label, ...children) {
  const d = h('dialog', {'aria-label': label}, ...children);
  d.addEventListener('close', () => d.remove());
  document.body.append(d);
  d.showModal();
  return d;
}

// ask is a dialog for what cannot be undone. typed: the person has to type this number.
export function ask(title, lines, verb, typed) {
  return new Promise((resolve) => {
    const input = typed !== undefined && h('input', {type: 'text', inputMode: 'numeric', autocomplete: 'off', 'aria-label': `Type ${typed} to confirm`});
    const reason = h('input', {type: 'text', maxLength: 120, autocomplete: 'off'});
    const go = h('button', {type: 'submit', class: 'danger', disabled: !!input}, verb);
    const form = h('form', {method: 'dialog'}, h('h2', {}, title), lines.map((l) => h('p', {}, l)),
      input && h('label', {}, `Type ${typed} to confirm`, input),
      h('label', {}, 'Reason, for the log', reason),
      h('div', {class: 'row end'}, h('button', {type: 'button', onclick: () => d.close()}, 'Cancel'), go));
    const d = dialog(title, form);
    if (input) input.addEventListener('input', () => { go.disabled = input.value.trim() !== String(typed); });
    let yes = false;
    form.addEventListener('submit', (e) => {
      e.preventDefault();
      yes = true;
      d.close();
    });
    d.addEventListener('close', () => resolve(yes ? {reason: reason.value} : null));
  });
}

// fix returns the one button that ends what limits a container, if the page has it.
export function fix(c) {
  const by = c.limited?.by;
  if (c.state === 'paused') return {label: 'Resume', run: (out) => act(out, 'POST', of(c, '/resume'), {}, 'resumed')};
  if (c.state === 'recovering' && by === 'broker') return {label: 'Try now', run: (out) => act(out, 'POST', of(c, '/reconnect'), {}, 'trying now')};
  if (c.throttle?.operator) return {label: 'Clear the limit', run: (out) => act(out, 'PUT', of(c, '/throttle'), {clear: true}, 'cleared')};
  if ((by === 'permits' || by === 'rate') && c.throttle?.fleet) return {label: 'Clear on the fleet', run: (out) => act(out, 'PUT', of(c, '/throttle'), {clear: true, scope: 'fleet'}, 'cleared')};
  return null;
}

export const link = (c) => `#/c/${encodeURIComponent(c.name || c.container)}` + (c.instance ? `/${encodeURIComponent(c.instance)}` : '');
