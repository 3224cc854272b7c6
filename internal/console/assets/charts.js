// Charts of time on a canvas.
import {h, span, count, rate} from './dom.js';
import {because} from './parts.js';

const SECONDS = 900, SHORT = 300; // a young history is drawn in five minutes
const reach = (at, now) => at.length && now - at[0] > SHORT ? SECONDS : SHORT;
let colours = null;
export const recolour = () => { colours = null; };

function colour(name) {
  colours ||= {css: getComputedStyle(document.documentElement), of: {}};
  return colours.of[name] ||= colours.css.getPropertyValue('--' + name).trim();
}

// sized makes the canvas as sharp as the screen; null: it is not to be seen.
function sized(canvas) {
  const w = canvas.clientWidth, hgt = canvas.clientHeight, d = window.devicePixelRatio || 1;
  if (!w || !hgt) return null;
  if (canvas.width !== Math.round(w * d) || canvas.height !== Math.round(hgt * d)) {
    canvas.width = Math.round(w * d);
    canvas.height = Math.round(hgt * d);
  }
  const g = canvas.getContext('2d');
  g.setTransform(d, 0, 0, d, 0, 0);
  g.clearRect(0, 0, w, hgt);
  return {g, w, hgt};
}

// spark draws a small line without axes.
export function spark(canvas, at, values, name) {
  const s = sized(canvas);
  if (!s || !at?.length) return;
  const seconds = reach(at, at[at.length - 1]);
  const {g, w, hgt} = s, end = at[at.length - 1], top = Math.max(...values, 1e-9);
  const n = Math.max(Math.floor(w / 2), 1), bins = new Array(n).fill(null);
  for (let i = 0; i < at.length; i++) { // the mean of what falls on the same place
    const b = n - 1 - Math.floor((end - at[i]) / seconds * n);
    if (b < 0) continue;
    const v = bins[b] || (bins[b] = [0, 0]);
    v[0] += values[i];
    v[1]++;
  }
  g.fillStyle = colour(name);
  for (let b = 0; b < n; b++) {
    if (!bins[b]) continue;
    const v = bins[b][0] / bins[b][1], y = v > 0 ? Math.max(v / top * (hgt - 1), 1) : 0.5;
    g.globalAlpha = v > 0 ? 1 : 0.35;
    g.fillRect(b * 2, hgt - y, 1.4, y);
  }
  g.globalAlpha = 1;
}

const nice = (v) => {
  if (v <= 0) return 1;
  const p = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 2.5, 5, 10].map((m) => m * p).find((m) => m >= v * 1.02);
};

const charts = new Set();
let hover = null; // the second under the pointer: the same on all charts

// chart is a figure: {title, unit, lines: [{key, label, colour, area, step}], marks, least}.
export function chart(o) {
  const unit = {rate, count, span}[o.unit];
  const canvas = h('canvas', {role: 'img'});
  const values = o.lines.map((l) => h('span', {class: 'value'}));
  const tip = h('div', {class: 'tip', hidden: true});
  const fig = h('figure', {class: 'chart'},
    h('figcaption', {}, h('span', {class: 'title'}, o.title),
      h('span', {class: 'legend'}, o.lines.map((l, i) => h('span', {class: 'key key-' + l.colour}, h('i', {'aria-hidden': 'true'}), l.label, ' ', values[i])))),
    h('div', {class: 'plot'}, canvas, tip));
  const c = {o, unit, canvas, values, tip, fig, series: null};
  c.draw = (series) => draw(c, series);
  canvas.addEventListener('pointermove', (e) => {
    const box = canvas.getBoundingClientRect();
    if (c.x) hover = Math.round(c.end - (1 - (e.clientX - box.left - c.left) / (box.width - c.left)) * c.seconds);
    redraw();
  });
  canvas.addEventListener('pointerleave', () => {
    hover = null;
    redraw();
  });
  charts.add(c);
  return c;
}

export function redraw() {
  for (const c of charts) {
    if (!c.fig.isConnected) charts.delete(c);
    else if (c.series) draw(c, c.series);
  }
}

function draw(c, s) {
  c.series = s;
  if (!s) return;
  const at = s.at, n = at.length, now = Math.max(n ? at[n - 1] : 0, Math.floor(Date.now() / 1000) - 1);
  for (const [i, l] of c.o.lines.entries()) {
    const v = n ? s[l.key][n - 1] : null, t = c.unit(v);
    if (c.values[i].textContent !== t) c.values[i].textContent = t;
  }
  const p = sized(c.canvas);
  if (!p) return;
  const seconds = reach(at, now);
  const {g, w, hgt} = p, bottom = 16, left = 42, ph = hgt - bottom - 6, pw = w - left;
  let most = 0;
  for (const l of c.o.lines) for (let i = 0; i < n; i++) if (at[i] > now - seconds && s[l.key][i] > most) most = s[l.key][i];
  const top = nice(Math.max(most, c.o.least || 0));
  const x = (t) => left + (1 - (now - t) / seconds) * pw, y = (v) => 6 + ph - v / top * ph;
  Object.assign(c, {x, end: now, left, seconds});
  g.font = '11px system-ui, sans-serif';
  g.textBaseline = 'middle';
  g.lineWidth = 1;
  for (const f of [0, 0.5, 1]) {
    const py = Math.round(y(top * f)) + 0.5;
    g.strokeStyle = colour('grid');
    g.beginPath();
    g.moveTo(left, py);
    g.lineTo(w, py);
    g.stroke();
    g.fillStyle = colour('muted');
    g.textAlign = 'right';
    g.fillText(short(top * f, c.o.unit), left - 5, Math.max(py, 7));
  }
  g.textBaseline = 'alphabetic';
  for (const m of seconds === SECONDS ? [15, 10, 5, 0] : [5, 4, 3, 2, 1, 0]) {
    g.textAlign = m * 60 === seconds ? 'left' : m === 0 ? 'right' : 'center';
    g.fillText(m ? `−${m} min` : 'now', Math.min(x(now - m * 60), w), hgt - 2);
  }
  for (const l of c.o.lines) line(g, s, l, x, y, now - seconds);
  if (c.o.marks) marks(g, s, x, y, now, c);
  hovered(c, g, s, x, y, hgt - bottom);
  const label = `${c.o.title}, last 15 minutes: ` + c.o.lines.map((l, i) => `${l.label} ${c.values[i].textContent}`).join(', ');
  if (c.label !== label) c.canvas.setAttribute('aria-label', c.label = label);
}

function short(v, unit) {
  if (unit === 'span') return v === 0 ? '0' : span(v).replace(' ', '');
  if (v >= 1e6) return +(v / 1e6).toFixed(1) + 'M';
  if (v >= 1000) return +(v / 1000).toFixed(1) + 'k';
  return String(+v.toFixed(v < 1 ? 2 : 1));
}

// line draws one measure; a gap is a gap. Where more points than pixels are, each pixel has
// the highest.
function line(g, s, l, x, y, after) {
  const at = s.at, v = s[l.key], pts = [];
  let last = null;
  for (let i = 0; i < at.length; i++) {
    if (at[i] <= after || v[i] === null || v[i] === undefined) continue;
    const px = x(at[i]), gap = last && at[i] - last.t > 3;
    if (last && !gap && px - last.x < 1) {
      if (v[i] > last.v) last.v = v[i];
      last.t = at[i];
      continue;
    }
    pts.push(last = {x: px, v: v[i], t: at[i], gap: !last || gap});
  }
  const path = (close) => {
    g.beginPath();
    let start = null;
    for (let i = 0; i < pts.length; i++) {
      const p = pts[i];
      if (p.gap) {
        if (close && start) {
          g.lineTo(pts[i - 1].x, y(0));
          g.lineTo(start.x, y(0));
        }
        g.moveTo(p.x, y(p.v));
        start = p;
      } else {
        if (l.step) g.lineTo(p.x, y(pts[i - 1].v));
        g.lineTo(p.x, y(p.v));
      }
    }
    if (close && start) {
      g.lineTo(pts[pts.length - 1].x, y(0));
      g.lineTo(start.x, y(0));
    }
  };
  if (l.area) {
    g.globalAlpha = 0.16;
    g.fillStyle = colour(l.colour);
    path(true);
    g.fill();
    g.globalAlpha = 1;
  }
  g.strokeStyle = colour(l.colour);
  g.lineWidth = 1.5;
  g.lineJoin = 'round';
  path(false);
  g.stroke();
  g.lineWidth = 1;
}

// marks are the decisions of the scaler: up above, down below the line.
function marks(g, s, x, y, now, c) {
  for (const m of s.scaled) {
    const t = new Date(m.at) / 1000;
    if (t <= now - c.seconds) continue;
    const px = x(t), py = y(m.to), up = m.to > m.from;
    g.fillStyle = colour(up ? 'accent' : 'muted');
    g.beginPath();
    g.moveTo(px, py + (up ? -7 : 7));
    g.lineTo(px - 4, py + (up ? -1 : 1));
    g.lineTo(px + 4, py + (up ? -1 : 1));
    g.fill();
  }
}

function hovered(c, g, s, x, y, bottom) {
  if (hover === null) {
    c.tip.hidden = true;
    return;
  }
  let i = s.at.findIndex((t) => t >= hover);
  if (i < 0) i = s.at.length - 1;
  if (i < 0 || Math.abs(s.at[i] - hover) > 5) {
    c.tip.hidden = true;
    return;
  }
  const px = x(s.at[i]);
  g.strokeStyle = colour('muted');
  g.beginPath();
  g.moveTo(px, 6);
  g.lineTo(px, bottom);
  g.stroke();
  const lines = [new Date(s.at[i] * 1000).toLocaleTimeString([], {hour12: false}), ...c.o.lines.map((l) => `${l.label} ${c.unit(s[l.key][i])}`)];
  if (c.o.marks) {
    for (const m of s.scaled) {
      if (Math.abs(new Date(m.at) / 1000 - s.at[i]) <= 8) lines.push(`${m.from} → ${m.to}${m.reason ? ': ' + because(m.reason) : ''}`);
    }
  }
  c.tip.replaceChildren(...lines.map((t, k) => h('div', {class: k ? '' : 'at'}, t)));
  c.tip.hidden = false;
  const room = c.canvas.clientWidth;
  if (px > room / 2) {
    c.tip.style.left = '';
    c.tip.style.right = `${room - px + 8}px`;
  } else {
    c.tip.style.right = '';
    c.tip.style.left = `${px + 8}px`;
  }
}
