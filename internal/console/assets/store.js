// What is known: filled by the stream of events, read by the views.

const base = new URL('../api/', import.meta.url);

export const store = {
  session: null, // who is here; null: not known yet
  denied: false, // a token is needed to see anything
  link: 'connecting', // live, stale, connecting
  staleSince: 0,
  instances: new Map(), // name → {instance, started, version, error, restarted}
  containers: new Map(), // id → container
  series: new Map(), // id → points of the last 15 minutes
  events: [], // the oldest first
  jobs: new Map(),
  actions: [],
  lastID: 0,
};

export const idOf = (c) => `${c.instance || ''}/${c.name || c.container}`;
export const operator = () => store.session?.role === 'operator' && store.link === 'live';
export const sees = () => store.session?.role === 'operator' || store.session?.role === 'viewer';
export const many = () => store.instances.size > 1;

const listeners = new Set();
export const changed = (f) => listeners.add(f);
let asked = false;
export function notify() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    for (const f of listeners) f();
  });
}

// Refusal is an answer of the API that is an error.
class Refusal extends Error {
  constructor(status, body) {
    super(body.message || `status ${status}`);
    this.status = status;
    this.code = body.code || 'unreachable';
    this.help = body.help || '';
  }
}

export async function call(method, path, body, signal) {
  let res;
  try {
    res = await fetch(new URL(path, base), {method, signal, credentials: 'same-origin',
      headers: body === undefined ? {} : {'Content-Type': 'application/json'}, body: body === undefined ? undefined : JSON.stringify(body)});
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    throw new Refusal(0, {code: 'unreachable', message: 'the instance does not answer', help: 'nothing may have been changed; try again when the page is live'});
  }
  let answer = {};
  try {
    answer = await res.json();
  } catch { /* an answer of a proxy */ }
  if (!res.ok) throw new Refusal(res.status, answer);
  return answer;
}

// of is the address of a container's part of the API.
export const of = (c, rest = '') => {
  const [path, query] = rest.split('?');
  const q = new URLSearchParams(query || '');
  if (c.instance && many()) q.set('instance', c.instance);
  const s = q.toString();
  return `containers/${encodeURIComponent(c.name || c.container)}${path}${s ? '?' + s : ''}`;
};
export const address = (path) => new URL(path, base).href;

let source = null, retry = 0, heard = 0;

export function connect() {
  source?.close();
  clearTimeout(retry);
  source = new EventSource(new URL(`events?after=${store.lastID}`, base));
  const on = (kind, f) => source.addEventListener(kind, (e) => {
    heard = Date.now();
    if (e.lastEventId) store.lastID = Number(e.lastEventId);
    f(JSON.parse(e.data));
    notify();
  });
  on('snapshot', snapshot);
  on('status', (m) => {
    for (const c of m.containers) store.containers.set(idOf(c), c);
  });
  on('points', points);
  on('event', (e) => {
    store.events.push(e);
    if (store.events.length > 2000) store.events.splice(0, 500);
    mark(e);
  });
  on('job', (j) => store.jobs.set(j.id, j));
  on('instance', (i) => store.instances.set(i.instance, {...store.instances.get(i.instance), ...i}));
  source.onerror = () => {
    stale();
    if (source.readyState === EventSource.CLOSED) again();
  };
}

async function again() {
  clearTimeout(retry);
  try {
    await call('GET', 'session');
    store.denied = false;
  } catch (err) {
    if (err.status === 401 || err.status === 403) {
      store.denied = true;
      notify();
      return; // a login connects again
    }
  }
  retry = setTimeout(connect, 1000 + Math.random() * 1000);
}

function stale() {
  if (store.link === 'live') {
    store.link = 'stale';
    store.staleSince = heard || Date.now();
  }
  notify();
}

// A proxy may keep a connection open that is dead: points come once a second.
setInterval(() => {
  if (store.link === 'live' && Date.now() - heard > 6000) {
    stale();
    connect();
  } else notify();
}, 1000);

function snapshot(m) {
  store.session = {role: m.role, name: m.name, instance: m.instance};
  store.denied = false;
  const was = store.link;
  store.link = 'live';
  for (const i of m.instances || [{instance: m.instance, started: m.started, version: m.version}]) {
    const before = store.instances.get(i.instance);
    const restarted = before && before.started !== i.started ? Date.now() : before?.restarted || 0;
    store.instances.set(i.instance, {...i, restarted});
  }
  store.actions = m.actions || [];
  store.jobs = new Map((m.jobs || []).map((j) => [j.id, j]));
  store.containers = new Map(m.containers.map((c) => [idOf(c), c]));
  if (was !== 'live') past();
}

async function past() {
  const seconds = store.containers.size > 20 ? 120 : 900;
  try {
    const all = await call('GET', `history?seconds=${seconds}`);
    for (const s of all.containers) loaded(idOf(s), s);
  } catch { /* the points to come are shown */ }
  notify();
}

// loaded takes a past from the API. What came by the stream while it was asked for is newer.
function loaded(id, s) {
  const old = store.series.get(id);
  store.series.set(id, s);
  if (!old) return;
  for (let i = old.at.findIndex((t) => !s.at.length || t > s.at[s.at.length - 1]); i >= 0 && i < old.at.length; i++) {
    for (const k of measures) s[k].push(old[k][i]);
  }
  for (const m of old.scaled) {
    if (!s.scaled.some((n) => n.at === m.at) && (!s.scaled.length || m.at > s.scaled[s.scaled.length - 1].at)) s.scaled.push(m);
  }
}

const measures = ['at', 'in', 'done', 'retried', 'dead', 'lost', 'backlog', 'in_flight', 'parked', 'workers', 'busy', 'permits', 'p50', 'p99', 'oldest', 'state'];
const emptySeries = (c) => ({container: c.name || c.container, instance: c.instance, scaled: [], hour_ago: null, ...Object.fromEntries(measures.map((k) => [k, []]))});

function points(m) {
  for (const p of m.points) {
    const id = `${p.instance || m.instance || ''}/${p.container}`;
    let s = store.series.get(id);
    if (!s) store.series.set(id, s = emptySeries({name: p.container, instance: p.instance || m.instance}));
    if (s.at.length && s.at[s.at.length - 1] >= p.at) continue;
    for (const k of measures) {
      s[k].push(p[k]);
      if (s[k].length > 900) s[k].shift();
    }
  }
}

// mark keeps the changes of the workers.
function mark(e) {
  if (e.kind !== 'scaled') return;
  const s = store.series.get(`${e.instance || ''}/${e.container}`);
  if (!s || s.scaled.some((m) => m.at === e.time)) return;
  s.scaled.push({at: e.time, from: e.from, to: e.to, reason: e.reason});
  if (s.scaled.length > 128) s.scaled.shift();
}

// full loads the 15 minutes of one container.
export async function full(c) {
  const id = idOf(c);
  if ((store.series.get(id)?.at.length || 0) > 600) return;
  try {
    loaded(id, await call('GET', of(c, '/history')));
    notify();
  } catch { /* the points to come are shown */ }
}

export async function login(body) {
  store.session = await call('POST', 'session', body);
  store.denied = false;
  connect();
}

export async function logout() {
  await call('DELETE', 'session');
  store.lastID = 0;
  store.events = [];
  connect();
}
