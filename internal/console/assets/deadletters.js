// What was given up: look, replay, export, purge.
import {h, put, text, cls, list, count, span, safe, safeBody, clock, ago} from './dom.js';
import {store, call, of, sees, many, address, idOf} from './store.js';
import {result, button, enable, ask, act} from './parts.js';

// plain is an error without where it was seen: the other columns say that.
const plain = (t) => String(t || '').replace(/^longshore: /, '').replace(/^(decode|handle) "[^"]*" message "[^"]*"( as \S+?)?: /, '');

export function deadLetters(name, instance) {
  let letters = [], whole = true, total = 0, loading = false, failure = null, current = null, chosen = new Set(), loadedFor = '';
  const pick = h('select', {'aria-label': 'Container', onchange: () => load(true)});
  const reason = h('select', {'aria-label': 'Reason', onchange: draw});
  const find = h('input', {type: 'search', placeholder: 'Find id, key or text', 'aria-label': 'Find', oninput: draw});
  const reload = h('button', {type: 'button', onclick: () => load(true)}, 'Reload');
  const out = result(), info = h('p', {class: 'muted'});
  const all = h('input', {type: 'checkbox', 'aria-label': 'Select all that are shown'});
  all.addEventListener('change', () => {
    for (const l of shown()) all.checked ? chosen.add(l.id) : chosen.delete(l.id);
    draw();
  });
  const body = h('tbody', {});
  const table = h('div', {class: 'scroll'}, h('table', {'aria-label': 'Dead letters'}, h('thead', {}, h('tr', {}, h('th', {class: 'tick'}, all), ['Message', 'Key', 'Reason', 'Attempts', 'Died', 'Error'].map((t) => h('th', {scope: 'col', class: t === 'Attempts' ? 'num' : ''}, t)))), body));
  const empty = h('div', {class: 'empty', hidden: true});
  const pane = h('aside', {class: 'panel letter', 'aria-label': 'One dead letter', hidden: true});
  const replay = button('Replay', () => job('replay'), 'primary'), exports = button('Export', () => job('export'), ''), purge = button('Purge…', () => job('purge'), 'danger');
  const jobs = h('div', {class: 'jobs', 'aria-label': 'Jobs'});
  const root = h('div', {}, h('h1', {}, 'Dead letters'), h('div', {class: 'bar'}, pick, reason, find, reload, h('span', {class: 'grow'}), replay, exports, purge), out, jobs, info, h('div', {class: 'split'}, h('div', {class: 'grow'}, table, empty), pane));

  const place = () => [...store.containers.values()].find((c) => idOf(c) === pick.value);
  const shown = () => {
    const q = find.value.trim().toLowerCase();
    return letters.filter((l) => (!reason.value || l.reason === reason.value) && (!q || `${l.id} ${l.key} ${l.error} ${l.reason}`.toLowerCase().includes(q)));
  };

  async function load(afresh) {
    const c = place();
    if (!c || loading || !sees()) return;
    if (afresh) {
      chosen.clear();
      current = null;
    }
    loading = true;
    loadedFor = pick.value;
    draw();
    try {
      const a = await call('GET', of(c, '/dead-letters?limit=500'));
      letters = a.letters;
      whole = a.whole;
      failure = null;
    } catch (err) {
      letters = [];
      failure = err;
    }
    loading = false;
    const have = new Set(letters.map((l) => l.id));
    for (const id of chosen) if (!have.has(id)) chosen.delete(id);
    if (loadedFor !== pick.value) return load(true);
    draw();
  }

  // selection is what a job is for: the chosen ones, else what the filter leaves.
  function selection() {
    if (chosen.size) return {n: chosen.size, body: {ids: [...chosen]}};
    if (find.value.trim()) return {n: shown().length, body: {ids: shown().map((l) => l.id)}};
    if (reason.value) return {n: shown().length, more: !whole, body: {reason: reason.value}};
    return {n: letters.length, more: !whole, body: {}};
  }

  async function job(kind) {
    const c = place(), s = selection(), n = `${count(s.n)}${s.more ? ' or more' : ''}`;
    let yes = {reason: ''};
    if (kind === 'purge') {
      yes = await ask(`Purge ${n} dead letter${s.n === 1 ? '' : 's'} of ${safe(c.name, 60)}?`, ['They are removed for good. Export them first if anybody may want to look at them.'], 'Purge', s.n);
    } else if (kind === 'replay') {
      yes = await ask(`Replay ${n} dead letter${s.n === 1 ? '' : 's'} of ${safe(c.name, 60)}?`, ['Each goes back to where it came from and is handled again. One that was handled in part is handled a second time.'], 'Replay', s.n > 1 ? s.n : undefined);
    }
    if (!yes) return;
    const j = await act(out, 'POST', of(c, '/jobs'), {kind, ...s.body, ...(yes.reason ? {why: yes.reason} : {})}, `${kind} began; it goes on when this page is closed`);
    if (j && !store.jobs.has(j.id)) store.jobs.set(j.id, j); // the stream may have been faster, and know its end
    chosen.clear();
    draw();
  }

  async function show(l) {
    current = l.id;
    draw();
    pane.hidden = false;
    put(pane, h('h2', {}, safe(l.id, 120)), h('p', {class: 'muted'}, 'Loading…'));
    let full;
    try {
      full = await call('GET', of(place(), `/dead-letters/${encodeURIComponent(l.id)}`));
    } catch (err) {
      const o = result();
      put(pane, h('h2', {}, safe(l.id, 120)), o, close());
      o.bad(err);
      return;
    }
    if (current !== l.id) return;
    const row = (k, v) => v === undefined || v === null || v === '' ? null : [h('dt', {}, k), h('dd', {}, v)];
    const when = full.at && h('time', {});
    if (when) clock(when, full.at);
    put(pane, h('div', {class: 'row'}, h('h2', {class: 'grow'}, safe(full.id, 200)), close()),
      h('dl', {class: 'pairs'}, row('key', safe(full.key, 300)), row('reason', safe(full.reason, 200)), row('error', safe(full.error, 2000)), row('attempts', full.attempts || ''), row('died', when), row('came from', safe(full.source, 200)), row('given up by', safe(full.by, 200)),
        row('replayed', full.replays ? `${full.replays} times before` : '')),
      h('h3', {}, 'Headers'), full.headers?.length ? h('dl', {class: 'pairs mono'}, full.headers.map((x) => [h('dt', {}, safe(x.name, 120)), h('dd', {}, safe(x.value, 1000))])) : h('p', {class: 'muted'}, 'none'),
      h('h3', {}, 'Body ', h('small', {}, `${safe(full.content_type, 80) || 'no content type'}, ${count(full.bytes)} bytes${full.cut ? ', cut' : ''}${full.masked?.length ? `, masked: ${full.masked.map((m) => safe(m, 60)).join(', ')}` : ''}`)),
      full.body === undefined ? h('p', {class: 'muted'}, 'Bodies are for operators.') : h('pre', {tabIndex: 0}, safeBody(full.body)));
  }
  const close = () => h('button', {type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: () => {
    current = null;
    pane.hidden = true;
    draw();
  }}, '✕');

  const seen = new Map();
  function drawJobs() {
    const js = [...store.jobs.values()].sort((a, b) => String(b.began).localeCompare(a.began)).slice(0, 5);
    list(jobs, js, (j) => j.id, (j) => {
      const bar = h('progress', {max: 1, 'aria-label': `Progress of ${j.kind}`}), t = h('span', {class: 'grow'}), b = button('Stop', () => act(out, 'DELETE', `jobs/${j.id}${many() ? `?instance=${encodeURIComponent(j.instance)}` : ''}`, undefined, 'stops after its batch'), 'small');
      const get = h('a', {class: 'button small', download: '', hidden: true}, 'Download');
      const el = h('div', {class: 'job'}, bar, t, get, b);
      Object.assign(el, {bar, t, b, get});
      return el;
    }, (el, j) => {
      const did = j.done + j.failed + j.kept;
      if (j.total > 0) el.bar.value = j.state === 'running' ? Math.min(did / j.total, 1) : 1;
      else if (j.state === 'running') el.bar.removeAttribute('value');
      else el.bar.value = 1;
      const seconds = (new Date(j.ended || Date.now()) - new Date(j.began)) / 1000, per = j.done / Math.max(seconds, 0.1), left = j.total > did && per > 0 ? (j.total - did) / per : 0;
      text(el.t, `${j.state === 'running' ? '' : j.state === 'done' ? '✓ ' : '▲ '}${j.kind} of ${safe(j.container, 60)}: ${count(j.done)}${j.total ? ` of ${count(j.total)}` : ''}` + (j.failed ? `, ${count(j.failed)} failed` : '') + (j.kept ? `, ${count(j.kept)} stay` : '') +
        (j.state === 'running' ? ` · ${count(per)}/s${left ? ` · ${span(left)} left` : ''}` : ` · ${j.state}${j.error ? `: ${safe(j.error, 200)}` : ''} · ${ago(j.ended)} ago`) + (j.by ? ` · by ${safe(j.by, 40)}` : ''));
      cls(el, `job ${j.state}`);
      el.b.hidden = j.state !== 'running';
      el.get.hidden = !(j.kind === 'export' && j.state === 'done');
      if (!el.get.hidden) el.get.href = address(`jobs/${j.id}/export${many() ? `?instance=${encodeURIComponent(j.instance)}` : ''}`);
      if (seen.get(j.id) === 'running' && j.state !== 'running') load();
      seen.set(j.id, j.state);
    });
  }

  let options = '';
  function draw() {
    const cs = [...store.containers.values()].filter((c) => c.dead_letters).sort((a, b) => b.dead - a.dead || a.name.localeCompare(b.name));
    const key = cs.map(idOf).sort().join('\n');
    if (key !== options) {
      options = key;
      const was = pick.value || (name && idOf({name, instance: instance || ''}));
      put(pick, cs.map((c) => h('option', {value: idOf(c)}, safe(c.name, 60) + (many() ? ` on ${safe(c.instance, 40)}` : ''))));
      if ([...pick.options].some((o) => o.value === was)) pick.value = was;
      load(true);
    }
    if (pick.value && loadedFor === '' && sees() && !loading) load(true);
    const reasons = [...new Set(letters.map((l) => l.reason))].sort();
    if (reason.options.length !== reasons.length + 1) {
      const was = reason.value;
      put(reason, h('option', {value: ''}, 'All reasons'), reasons.map((r) => h('option', {value: r}, `${safe(r, 60) || 'not known'} (${letters.filter((l) => l.reason === r).length})`)));
      reason.value = reasons.includes(was) ? was : '';
    }
    const ls = shown();
    list(body, ls.slice(0, 300), (l) => l.id, (l) => {
      const tick = h('input', {type: 'checkbox', 'aria-label': `Select message ${safe(l.id, 80)}`});
      tick.addEventListener('change', () => {
        tick.checked ? chosen.add(l.id) : chosen.delete(l.id);
        draw();
      });
      const t = h('time', {});
      clock(t, l.at);
      const tr = h('tr', {}, h('td', {class: 'tick'}, tick), h('td', {class: 'id'}, h('button', {type: 'button', class: 'linkish', onclick: () => show(l)}, safe(l.id, 80))), h('td', {class: 'id'}, safe(l.key, 60)), h('td', {}, safe(l.reason, 60)), h('td', {class: 'num'}, l.attempts || '–'), h('td', {}, t), h('td', {class: 'wrap'}, h('span', {class: 'two'}, safe(plain(l.error), 300)), (l.replayed ? ' (replayed)' : '')));
      tr.tick = tick;
      return tr;
    }, (tr, l) => {
      tr.tick.checked = chosen.has(l.id);
      cls(tr, current === l.id ? 'is-current' : '');
    });
    all.checked = ls.length > 0 && ls.every((l) => chosen.has(l.id));
    table.hidden = !ls.length;
    empty.hidden = ls.length > 0;
    const c = place();
    if (failure) put(empty, h('strong', {}, `error[${safe(failure.code, 40)}] `), safe(failure.message, 300), failure.help && h('p', {}, safe(failure.help, 300)));
    else text(empty, !sees() ? 'Log in as a viewer to see dead letters.' : !cs.length ? 'No container of this service shows its dead letters here: set admin.Config.DeadLetters. Then longshore dlq list does the same in a terminal.'
      : loading ? 'Loading…' : letters.length ? 'No dead letter matches the filter.' : `No dead letters${c?.dead ? '; those of this run were replayed or removed' : ''}.`);
    text(info, ls.length ? `${count(ls.length)}${whole ? '' : ' of the oldest 500'} shown${chosen.size ? `, ${count(chosen.size)} selected` : ''}` : '');
    const s = selection();
    for (const [b, t] of [[replay, 'Replay'], [exports, 'Export'], [purge, 'Purge']]) {
      text(b, `${t}${s.n ? ` ${count(s.n)}${s.more ? '+' : ''}` : ''}${t === 'Export' ? '' : '…'}`);
      enable(b, s.n > 0, 'There is nothing to do');
    }
    drawJobs();
  }
  return {el: root, draw, focusFilter: () => find.focus(), title: () => 'Dead letters'};
}
