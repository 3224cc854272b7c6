// Elements, and text from messages that stays text.

// h makes an element. Strings become text nodes: nothing here parses HTML.
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
    else if (k === 'class') el.className = v;
    else if (k in el && k !== 'list' && k !== 'form') el[k] = v;
    else el.setAttribute(k, v === true ? '' : v);
  }
  add(el, children);
  return el;
}

function add(el, children) {
  for (const c of children.flat(3)) {
    if (c === null || c === undefined || c === false) continue;
    el.append(c instanceof Node ? c : String(c));
  }
}

// put replaces the children of an element.
export function put(el, ...children) {
  el.replaceChildren();
  add(el, children);
  return el;
}

// text changes a text only if it differs, so that selections and screen readers are left alone.
export function text(el, value) {
  value = String(value);
  if (el.textContent !== value) el.textContent = value;
}

export function attr(el, name, value) {
  if (value === null || value === undefined || value === false) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
  } else if (el.getAttribute(name) !== String(value)) el.setAttribute(name, value);
}

export function cls(el, name) {
  if (el.className !== name) el.className = name;
}

// list keeps one child of parent for each item, in their order: what stays is updated in its
// place, so that focus and scrolling survive.
export function list(parent, items, key, make, update) {
  const have = parent.rows_ || (parent.rows_ = new Map());
  const seen = new Set();
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    if (seen.has(k)) continue;
    seen.add(k);
    let el = have.get(k);
    if (!el) {
      el = make(item);
      have.set(k, el);
    }
    update?.(el, item);
    if (el !== at) {
      // moving the element that has the focus would lose it
      const focused = el.contains(document.activeElement) ? document.activeElement : null;
      parent.insertBefore(el, at);
      focused?.focus({preventScroll: true});
    } else at = at.nextElementSibling;
  }
  for (const [k, el] of have) {
    if (!seen.has(k)) {
      el.remove();
      have.delete(k);
    }
  }
}

// Controls, ANSI escapes, marks that turn the direction, and what has no width would make a
// text look like another one: they are shown as what they are.
const odd = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff]|\p{Cf}/gu;
const oddInBody = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff]|\p{Cf}/gu;
const escape = (c) => '\\u' + c.codePointAt(0).toString(16).padStart(4, '0');

export const safe = (s, most = 300) => {
  s = String(s ?? '');
  return (s.length > most ? s.slice(0, most) + '…' : s).replace(odd, escape);
};
export const safeBody = (s) => String(s ?? '').replace(oddInBody, escape);

const numbers = new Intl.NumberFormat('en');
export const count = (n) => n === null || n === undefined ? '–' : numbers.format(Math.round(n));
export const rate = (n) => n === null || n === undefined ? '–' : n === 0 ? '0' : n < 9.95 ? n.toFixed(1) : count(n);

// span is a time in seconds for people.
export function span(s) {
  if (s === null || s === undefined || Number.isNaN(s)) return '–';
  if (s <= 0) return '0 s';
  if (s < 0.0995) return `${s < 0.00995 ? (s * 1000).toFixed(1) : Math.round(s * 1000)} ms`;
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

// clock is a time of the viewer's zone; the title has UTC.
export function clock(el, when) {
  if (!when) {
    text(el, '–');
    return el;
  }
  const d = new Date(when);
  const day = d.toDateString() === new Date().toDateString() ? '' : d.toLocaleDateString() + ' ';
  text(el, day + d.toLocaleTimeString([], {hour12: false}));
  attr(el, 'datetime', d.toISOString());
  attr(el, 'title', d.toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC'));
  return el;
}
export const time = (when) => clock(h('time'), when);

export const ago = (when) => span(Math.max(0, (Date.now() - new Date(when)) / 1000));

const said = () => document.getElementById('said');
// say lets a screen reader hear what changed.
export const say = (what) => text(said(), what);
