// One container: what limits it, its last 15 minutes, what it holds, and the buttons beside
// what they affect.
import {h, text, cls, list, count, rate, span, safe, clock, ago, time} from './dom.js';
import {store, call, of, idOf, full, many, sees} from './store.js';
import {chart} from './charts.js';
import {badge, setBadge, sentence, limited, advice, headline, fix, result, button, enable, ask, act, scaledBy} from './parts.js';
import {transports} from './overview.js';
import {line as eventLine} from './events.js';

const hung = 10; // seconds from which a call is shown as one that may not end

export function container(name, instance) {
  const find = () => [...store.containers.values()].find((c) => c.name === name && (!instance || c.instance === instance));
  const title = h('h1', {}), state = badge(), source = h('p', {class: 'muted'}), gone = h('p', {class: 'empty', hidden: true}, 'There is no such container here (any more).');
  const banners = h('div', {class: 'banners'});
  const facts = h('dl', {class: 'facts'});
  const out = result();
  const pause = button('Pause', () => withReason(pauseBox), '');
  const drain = button('Drain…', doDrain, '');
  const pauseReason = h('input', {type: 'text', placeholder: 'reason', maxLength: 120, 'aria-label': 'Reason for the pause'});
  const pauseBox = h('div', {class: 'row', hidden: true}, pauseReason, button('Pause now', () => {
    act(out, 'POST', of(find(), '/pause'), {reason: pauseReason.value}, 'paused');
    pauseBox.hidden = true;
  }, 'primary'));
  function withReason(box) {
    const c = find();
    if (c.state === 'paused') return act(out, 'POST', of(c, '/resume'), {}, 'resumed');
    box.hidden = !box.hidden;
    if (!box.hidden) pauseReason.focus();
  }
  async function doDrain() {
    const c = find(), yes = await ask(`Drain ${safe(c.name, 60)}?`, [`${count(c.in_flight)} messages in work are finished, the others go back to the broker. The container stays stopped until the service is started again.`], 'Drain');
    if (yes) act(out, 'POST', of(c, '/drain'), yes, (r) => r.text ? safe(r.text, 300) : 'drained');
  }

  // Charts.
  const charts = [
    chart({title: 'Messages per second', unit: 'rate', lines: [{key: 'in', label: 'in', colour: 'series2'}, {key: 'done', label: 'done', colour: 'series1', area: true}]}),
    chart({title: 'Workers', unit: 'count', least: 4, marks: true, lines: [{key: 'workers', label: 'workers', colour: 'series1', step: true}, {key: 'busy', label: 'busy', colour: 'series3', area: true}]}),
    chart({title: 'Backlog at the broker', unit: 'count', least: 10, lines: [{key: 'backlog', label: 'waiting', colour: 'series1', area: true}]}),
    chart({title: 'Handler time', unit: 'span', lines: [{key: 'p99', label: 'p99', colour: 'series3'}, {key: 'p50', label: 'p50', colour: 'series1'}]}),
    chart({title: 'Held here', unit: 'count', least: 10, lines: [{key: 'in_flight', label: 'in flight', colour: 'series1'}, {key: 'parked', label: 'parked', colour: 'series3', area: true}]}),
    chart({title: 'Failures per second', unit: 'rate', least: 1, lines: [{key: 'retried', label: 'retried', colour: 'series3'}, {key: 'dead', label: 'dead', colour: 'bad', area: true}]}),
  ];

  // Workers.
  const lo = h('input', {type: 'number', min: 1, max: 10000, 'aria-label': 'Fewest workers'}), hi = h('input', {type: 'number', min: 1, max: 10000, 'aria-label': 'Most workers'});
  const scaleOut = result(), scaleReason = h('input', {type: 'text', placeholder: 'reason', maxLength: 120, 'aria-label': 'Reason for the bounds'});
  const scaleForm = h('div', {class: 'row'}, lo, h('span', {}, 'to'), hi, scaleReason,
    button('Set', () => act(scaleOut, 'PUT', of(find(), '/workers'), {min: Number(lo.value), max: Number(hi.value), reason: scaleReason.value}, 'set').then((ok) => { if (ok) dirty.delete('workers'); }), ''));
  const scaleNow = h('span', {class: 'now'}), scaled = h('ol', {class: 'decisions', 'aria-label': 'Scaling decisions, the newest first'});
  const dirty = new Set();
  for (const i of [lo, hi]) i.addEventListener('input', () => dirty.add('workers'));

  // Throttle.
  const slider = h('input', {type: 'range', min: 0, max: 32, step: 1, 'aria-label': 'Permits'}), permits = h('input', {type: 'number', min: 0, max: 100000, 'aria-label': 'Permits'});
  const hold = h('select', {'aria-label': 'How long'}, [['10m', '10 min'], ['1m', '1 min'], ['1h', '1 h'], ['8h', '8 h'], ['', 'until cleared']].map(([v, t]) => h('option', {value: v}, t)));
  const throttleReason = h('input', {type: 'text', placeholder: 'reason', maxLength: 120, 'aria-label': 'Reason for the limit'});
  const throttleOut = result(), throttleNow = h('span', {class: 'now'});
  slider.addEventListener('input', () => { dirty.add('permits'); permits.value = slider.value; });
  permits.addEventListener('input', () => { dirty.add('permits'); slider.value = permits.value; });
  const clearLimit = button('Clear', () => act(throttleOut, 'PUT', of(find(), '/throttle'), {clear: true, reason: throttleReason.value}, 'cleared').then((ok) => { if (ok) dirty.delete('permits'); }), '');
  const throttleForm = h('div', {}, h('div', {class: 'row'}, slider, permits, h('span', {}, 'at once'), h('span', {}, 'for'), hold), h('div', {class: 'row'}, throttleReason,
    button('Limit', () => act(throttleOut, 'PUT', of(find(), '/throttle'), {permits: Number(permits.value), ...(hold.value ? {for: hold.value} : {}), reason: throttleReason.value}, 'limited').then((ok) => { if (ok) dirty.delete('permits'); }), ''), clearLimit));
  const noThrottle = h('p', {class: 'muted', hidden: true}, 'This container has no throttle: set container.Config.Throttle to throttle.NewUnlimited() to limit it from here.');

  const panel = (t, note, ...kids) => h('section', {class: 'panel', 'aria-label': t}, h('h2', {}, t, note && h('small', {}, ' ', note)), ...kids);
  const table = (label, heads) => {
    const body = h('tbody', {}), empty = h('p', {class: 'empty'});
    const el = h('div', {class: 'scroll'}, h('table', {'aria-label': label}, h('thead', {}, h('tr', {}, heads.map((t) => h('th', {scope: 'col', class: /^(Age|Attempt|Waiting|Count|Position|End|Prefetch|Partitions)$/.test(t) ? 'num' : ''}, t)))), body));
    return {el: h('div', {}, el, empty), body, empty, scroll: el};
  };
  const running = table('Running', ['Message', 'Key', 'Age', 'Attempt', 'Where', '']), parked = table('Parked', ['Message', 'Key', 'Age', 'Attempt', 'Next try', '']);
  const keys = table('Keys with the most work', ['Key', 'Waiting', 'Share of the window', 'Its first message']);
  const errors = table('Errors of the last 15 minutes', ['Error', 'Count', 'Last', 'Text']);
  const partitions = table('Partitions', ['Partition', 'Position', 'End', 'Behind the end', 'Held back by', '']);
  const consumers = table('Consumers of the source', ['Consumer', 'Host', 'Program', 'Prefetch', 'Partitions', 'State']);
  const recordOut = result(), partOut = result();
  const recent = h('ol', {class: 'events', 'aria-label': 'Last events'});
  const keysPanel = panel('Hot keys', '', keys.el), share = h('span', {class: 'now'}), partPanel = panel('Partitions', 'of this instance', partitions.el, partOut), usersPanel = panel('Consumers', 'all who consume from the source', share, consumers.el), errPanel = panel('Errors', 'last 15 minutes', errors.el);
  const heldNow = h('span', {class: 'now'});

  const root = h('div', {class: 'one'},
    h('div', {class: 'titlerow'}, h('div', {}, h('p', {class: 'crumb'}, h('a', {href: '#/'}, '← All containers')), h('div', {class: 'row'}, title, state), source),
      h('div', {class: 'actions'}, h('div', {class: 'row'}, pause, drain), pauseBox, out)),
    gone, banners, facts,
    h('div', {class: 'charts'}, charts.map((c) => c.fig)),
    h('div', {class: 'cols'},
      panel('Workers', '', scaleNow, scaleForm, scaleOut, scaled),
      panel('Limit', 'handlers at once, on this instance', throttleNow, throttleForm, noThrottle, throttleOut)),
    panel('Running now', 'the oldest first', heldNow, running.el, recordOut),
    h('div', {class: 'cols'}, panel('Waiting for a retry', '', parked.el), errPanel),
    partPanel,
    h('div', {class: 'cols'}, keysPanel, usersPanel),
    panel('Last events', 'failed messages aside', recent));

  let most = 1; // the largest lag of a partition
  let detail = null, timer = 0, aborter = null, loaded = '', failedDetail = null;
  async function load() {
    clearTimeout(timer);
    const c = find();
    if (c && sees() && store.link === 'live' && !document.hidden) {
      aborter = new AbortController();
      try {
        detail = await call('GET', of(c, '/detail'), undefined, aborter.signal);
        failedDetail = null;
        draw();
      } catch (err) {
        if (err.name === 'AbortError') return;
        failedDetail = err;
      }
    }
    timer = setTimeout(load, 1500);
  }
  load();

  // do one thing with one record.
  async function one(rec, verb, label, out) {
    const c = find();
    let body = {record: rec.record}, yes = {reason: ''};
    const runs = rec.state === 'running' || rec.state === 'stuck';
    if (verb !== 'retry-now') {
      yes = await ask(`${label} message ${safe(rec.record, 80)}?`, [
        verb === 'dead-letter' ? 'It goes to the dead-letter destination and is not tried again here.' : 'It goes back to the broker, uncounted; it may come again at once, here or elsewhere.',
        runs && 'Its handler runs: its context ends now. What it has done stays done.'].filter(Boolean), label);
      if (!yes) return;
    }
    body = {...body, ...(yes.reason ? {reason: yes.reason} : {}), ...(runs ? {interrupt: true} : {})};
    await act(out, 'POST', of(c, `/records/${verb}`), body, (r) => safe(r.done, 200));
    load();
  }

  const cell = (cl) => h('td', {class: cl || ''});
  function recordRow(out, withRetry) {
    const tr = h('tr', {}, cell('id'), cell('id'), cell('num'), cell('num'), cell('wrap'), cell('buttons'));
    const b = tr.lastChild;
    b.append(withRetry ? button('Retry now', () => one(tr.rec, 'retry-now', 'Retry', out), 'small') : '', button('Dead-letter…', () => one(tr.rec, 'dead-letter', 'Dead-letter', out), 'small'), button('Release…', () => one(tr.rec, 'release', 'Release', out), 'small'));
    return tr;
  }

  function drawRecords(c) {
    const recs = detail?.records || [], run = recs.filter((r) => r.state === 'running' || r.state === 'stuck'), park = recs.filter((r) => r.state === 'parked' || r.state === 'moving');
    list(running.body, run.slice(0, 20), (r) => r.record, () => recordRow(recordOut, false), (tr, r) => {
      tr.rec = r;
      const t = tr.children, old = r.age >= hung;
      cls(tr, old ? 'is-problem' : '');
      text(t[0], safe(r.record, 80));
      text(t[1], safe(r.key, 80));
      text(t[2], `${old ? '▲ ' : ''}${span(r.age)}`);
      text(t[3], `${r.attempt} of ${r.of}`);
      text(t[4], r.at ? safe(r.at, 160) : '');
    });
    list(parked.body, park.slice(0, 20), (r) => r.record, () => recordRow(recordOut, true), (tr, r) => {
      tr.rec = r;
      const t = tr.children, due = r.due ? (new Date(r.due) - Date.now()) / 1000 : 0;
      text(t[0], safe(r.record, 80));
      text(t[1], safe(r.key, 80));
      text(t[2], span(r.age));
      text(t[3], `${r.attempt} of ${r.of}`);
      text(t[4], r.state === 'moving' ? `dead-letter destination, in ${span(due)}` : due > 0 ? `in ${span(due)}` : 'now');
    });
    const oldest = run[0]?.age || 0;
    cls(heldNow, oldest >= hung ? 'now is-problem' : 'now');
    text(heldNow, `${count(c.workers.busy)} of ${count(c.workers.now)} workers are busy` + (c.waiting || c.queued ? `; ${count(c.waiting)} could start now, ${count(c.queued)} wait behind their key` : '') +
      (oldest >= hung ? `; the oldest call has run for ${span(oldest)}${c.rate < 0.05 && (c.backlog || c.waiting) ? `, 0/s while ${count((c.backlog || 0) + c.waiting)} wait` : ''}` : '') + `. Window ${count(c.in_flight)} of ${count(c.window)}${holders(c)}${c.parked ? `; ${count(c.parked)} wait for a retry` : ''}.`);
    none(running, run, texts('No handler runs.'));
    none(parked, park, texts(c.parked ? `${count(c.parked)} wait.` : 'Nothing waits for a retry.'));
  }

  // holders says which key or partition holds the most of the window.
  function holders(c) {
    if (!c.hot_share || c.lanes < 2) return '';
    const k = detail?.keys?.[0];
    return `, ${Math.round(100 * c.hot_share)} % by ${k ? safe(k.key, 40) : 'the largest key or partition'}`;
  }

  const texts = (t) => !sees() ? 'Log in to see ids and keys.' : failedDetail ? `Not loaded: ${safe(failedDetail.message, 200)}` : detail ? t : 'Loading…';
  function none(t, items, say) {
    t.scroll.hidden = !items.length;
    t.empty.hidden = items.length > 0;
    text(t.empty, say);
  }

  function drawLists(c) {
    const ks = detail?.keys || [];
    list(keys.body, ks.slice(0, 10), (k) => k.key, () => {
      const bar = h('i', {});
      const tr = h('tr', {}, cell('id'), cell('num'), h('td', {}, h('span', {class: 'meter wide', 'aria-hidden': 'true'}, bar), h('span', {})), cell('wrap'));
      tr.bar = bar;
      return tr;
    }, (tr, k) => {
      const t = tr.children;
      text(t[0], safe(k.key, 80));
      text(t[1], count(k.waiting));
      tr.bar.style.width = `${Math.min(100, 100 * k.share)}%`;
      text(t[2].lastChild, ` ${Math.round(100 * k.share)} %`);
      text(t[3], k.state ? `${k.state}${k.age ? ' for ' + span(k.age) : ''}, attempt ${k.attempt}${k.due ? `, next try in ${span((new Date(k.due) - Date.now()) / 1000)}` : ''}` : '');
      cls(tr, k.state === 'stuck' || k.state === 'running' && k.age >= hung ? 'is-problem' : '');
    });
    none(keys, ks, texts('No key has more than one message here.'));
    const es = detail?.errors || [];
    list(errors.body, es, (e) => e.code, () => h('tr', {}, cell('id'), cell('num'), h('td', {}, h('time', {})), cell('wrap')), (tr, e) => {
      text(tr.children[0], safe(e.code, 40));
      text(tr.children[1], count(e.count));
      clock(tr.children[2].firstChild, e.last);
      text(tr.children[3], safe(e.text, 200));
    });
    none(errors, es, texts('No errors.'));
    const ps = detail?.partitions || [];
    partPanel.hidden = !ps.length;
    most = Math.max(1, ...ps.map((p) => p.lag));
    list(partitions.body, ps, (p) => `${p.topic}/${p.partition}`, partitionRow, drawPartition);
    none(partitions, ps, '');
    drawConsumers();
  }

  function drawConsumers() {
    const all = detail?.consumers, us = all?.list || [];
    usersPanel.hidden = !all;
    const s = all?.share ?? null;
    text(share, !all || all.problem ? '' : `${count(all.total)} in all` + (all.total > us.length ? `, ${count(us.length)} shown` : '') + (s === null ? '' : `; our share of what arrives is ${Math.round(100 * s)} %`) + '.');
    cls(share, s !== null && us.some((u) => !u.own) ? 'now is-notice' : 'now');
    const parts = us.some((u) => u.partitions !== null);
    list(consumers.body, us, (u) => `${u.host}/${u.client}/${u.id}`, () => h('tr', {}, cell('id'), cell('id'), cell('wrap'), cell('num'), cell('num'), cell()), (tr, u) => {
      const t = tr.children;
      text(t[0], safe(u.id, 60));
      text(t[1], safe(u.host, 60));
      text(t[2], [safe(u.client, 60), safe(u.product, 80)].filter(Boolean).join(' · ') || 'not known');
      text(t[3], parts ? '–' : u.prefetch ? count(u.prefetch) : 'no limit');
      text(t[4], u.partitions === null ? '–' : count(u.partitions));
      text(t[5], `${u.own ? '● this instance' : '○ another'}${u.standby ? ', stands by' : ''}`);
    });
    none(consumers, us, all?.problem ? `${safe(all.problem, 200)}${all.help ? ': ' + safe(all.help, 200) : ''}` : 'None.');
  }

  function partitionRow() {
    const bar = h('i', {});
    const tr = h('tr', {}, cell('id'), cell('num'), cell('num'), h('td', {}, h('span', {class: 'meter wide', 'aria-hidden': 'true'}, bar), h('span', {})), cell('wrap'), cell('buttons'));
    tr.bar = bar;
    const dead = button('Dead-letter…', () => tr.p.record && one({record: tr.p.record, state: tr.p.state}, 'dead-letter', 'Dead-letter', partOut), 'small');
    const past = button('Seek past…', async () => {
      const p = tr.p, yes = await ask(`Seek past offset ${p.position || 0} of ${safe(p.topic, 60)}/${p.partition}?`, [`Offset ${p.position || 0} is skipped for good: it is not handled and not dead-lettered.`, `Reading goes on at ${(p.position || 0) + 1}; what was done beyond is done again.`], 'Seek past');
      if (yes) act(partOut, 'POST', of(find(), '/seek'), {topic: p.topic, partition: p.partition, offset: (p.position || 0) + 1, ...yes}, 'moved');
    }, 'small');
    tr.lastChild.append(dead, past);
    tr.buttons = [dead, past];
    return tr;
  }
  function drawPartition(tr, p) {
    tr.p = p;
    const t = tr.children, blocked = !!p.since;
    cls(tr, p.full ? 'is-problem' : '');
    text(t[0], `${safe(p.topic, 60)}/${p.partition}`);
    text(t[1], p.next >= 0 ? count(p.next) : '–');
    text(t[2], p.end >= 0 ? count(p.end) : '–');
    tr.bar.style.width = p.lag > 0 ? `${Math.min(100, Math.max(2, 100 * p.lag / most))}%` : '0';
    text(t[3].lastChild, p.lag < 0 ? ' not known' : ` ${count(p.lag)}${p.committed >= 0 ? `, committed to ${count(p.committed)}` : ', nothing committed'}`);
    text(t[4], blocked ? `${p.full ? '▲ ' : ''}offset ${count(p.position || 0)}${p.key ? `, key ${safe(p.key, 60)}` : ''}, for ${ago(p.since)}${p.attempt ? `, attempt ${p.attempt}` : ''}${p.due ? `, next try in ${span((new Date(p.due) - Date.now()) / 1000)}` : ''}; ${count(p.behind + 1)} of ${count(p.window)} in the window` : '');
    for (const b of tr.buttons) b.hidden = !blocked;
    enable(tr.buttons[0], !!p.record, 'The record is not held at the moment');
  }

  function drawBanners(c) {
    const bs = [];
    if (c.level !== 'ok') bs.push({id: 'why', level: c.level, head: headline(c), text: sentence(c), advice: advice(c), fix: fix(c)});
    const th = c.throttle, set = limited(c);
    if (set) {
      if (bs[0]?.fix?.label === 'Clear the limit') bs[0].fix = null;
      if (bs[0] && !c.limited?.by) bs.pop();
      bs.push({id: 'limit', level: 'notice', head: '', text: set, advice: '', fix: {label: 'Clear the limit', run: (x) => act(x, 'PUT', of(c, '/throttle'), th.operator ? {clear: true} : {clear: true, scope: 'fleet'}, 'cleared')}});
    }
    list(banners, bs, (b) => b.id + (b.fix?.label || ''), (b) => {
      const el = h('div', {class: 'banner'}, h('strong', {}), ' ', h('span', {}), ' ', h('span', {class: 'advice'}), ' '), o2 = result();
      if (b.fix) el.append(button(b.fix.label, () => el.b.fix?.run(o2), 'small'));
      el.append(o2);
      return el;
    }, (el, b) => {
      el.b = b;
      cls(el, `banner is-${b.level}`);
      text(el.children[0], b.head ? b.head + '.' : '');
      text(el.children[1], b.text);
      text(el.children[2], b.fix ? '' : b.advice);
    });
  }

  function drawFacts(c, s) {
    const n = s ? s.at.length - 1 : -1, last = (k) => n >= 0 ? s[k][n] : null;
    const hour = s?.hour_ago || (c.handler_usual ? {p50: c.handler_usual} : null);
    const f = [
      ['ok', `${rate(last('done') ?? c.rate)}/s`, c.rate < 0.05 && c.backlog > 0 && c.state === 'running' ? 'is-problem' : ''],
      ['failed', `${rate(last('retried'))}/s`, ''],
      ['dead', `${rate(last('dead'))}/s`, last('dead') > 0 ? 'is-problem' : ''],
      ['backlog', count(c.backlog), ''],
      ['busy', `${count(c.workers.busy)} of ${count(c.workers.now)}`, ''],
      ['handler p50 · p99', `${span(c.handler_p50)} · ${span(c.handler_p99)}`, ''],
      [s?.hour_ago ? 'an hour ago' : 'usual p50', hour ? `${span(hour.p50)}${hour.p99 ? ' · ' + span(hour.p99) : ''}` : 'not known yet', ''],
      ['oldest held', c.oldest ? span(c.oldest) : 'nothing', c.oldest >= 60 ? 'is-notice' : ''],
      ['last message', c.last_delivery ? `${ago(c.last_delivery)} ago` : 'never', c.last_delivery ? '' : 'is-notice'],
    ];
    list(facts, f, (x) => x[0], (x) => h('div', {}, h('dt', {}, x[0]), h('dd', {})), (el, x) => {
      cls(el, x[2]);
      text(el.lastChild, x[1]);
    });
  }

  function drawControls(c, s) {
    text(pause, c.state === 'paused' ? 'Resume' : 'Pause');
    cls(pause, c.state === 'paused' ? 'primary' : '');
    if (c.state === 'paused') pauseBox.hidden = true;
    enable(pause, !['draining', 'stopped'].includes(c.state), `It is ${c.state}`);
    enable(drain, !['draining', 'stopped'].includes(c.state), `It is ${c.state}`);
    const w = c.workers;
    if (!dirty.has('workers') && document.activeElement !== lo && document.activeElement !== hi) {
      lo.value = w.min;
      hi.value = w.max;
    }
    text(scaleNow, `${w.now} workers, ${w.busy} busy${w.limit ? `; held by: ${safe(w.limit, 60)}` : ''}`);
    const th = c.throttle;
    throttleForm.hidden = !th;
    noThrottle.hidden = !!th;
    if (th) {
      const set = th.operator || th.fleet;
      text(throttleNow, (th.permits < 0 ? 'No limit of handlers at once' : `${th.permits} at once, ${th.in_use || 0} in use`) + (th.rate >= 0 ? `; ${th.rate} per second` : '') +
        (set ? `; set${set.by ? ` by ${safe(set.by, 60)}` : ''}${set.reason ? ` (${safe(set.reason, 120)})` : ''}${set.until ? ` until ${new Date(set.until).toLocaleTimeString([], {hour12: false})}` : ', until cleared'}` : ''));
      cls(throttleNow, set ? 'now is-notice' : 'now');
      enable(clearLimit, !!th.operator, 'No limit was set by hand');
      slider.max = Math.max(w.max, 16);
      if (!dirty.has('permits') && document.activeElement !== permits) permits.value = slider.value = th.permits < 0 ? w.max : th.permits;
    } else text(throttleNow, '');
    const ds = (s?.scaled || []).slice(-8).reverse();
    list(scaled, ds, (m) => m.at, (m) => h('li', {}, time(m.at), ` ${m.from} → ${m.to} `, h('span', {class: 'muted'})), (li, m) => text(li.lastChild, scaledBy(c, s, m)));
  }

  function draw() {
    const c = find();
    gone.hidden = !!c || store.link === 'connecting';
    for (const el of root.children) if (el !== gone && el !== root.firstChild && el !== banners) el.hidden = !c;
    if (!c) {
      text(title, safe(name, 80));
      return;
    }
    const id = idOf(c), s = store.series.get(id);
    if (loaded !== id) {
      loaded = id;
      full(c);
    }
    text(title, safe(c.name, 80));
    setBadge(state, c);
    const d = detail?.source;
    text(source, [transports[c.transport] || c.transport, d ? safe(`${d.kind} ${d.name}`, 160) : safe(c.source, 160), d?.address && `at ${safe(d.address, 160)}`, d?.namespace && `vhost ${safe(d.namespace, 80)}`, d?.bindings && `bound to ${safe(d.bindings, 200)}`, many() && `on ${safe(c.instance, 60)}`,
      c.since && !c.since.startsWith('0001') && c.state !== 'stopped' && `up ${ago(c.since)}`, detail?.dead_letter_to && `dead letters to ${safe(detail.dead_letter_to, 120)}`].filter(Boolean).join(' · '));
    drawBanners(c);
    drawFacts(c, s);
    drawControls(c, s);
    drawRecords(c);
    drawLists(c);
    for (const x of charts) x.draw(s);
    const es = [];
    for (let i = store.events.length - 1; i >= 0 && es.length < 8; i--) {
      const e = store.events[i];
      if (e.kind !== 'failed' && e.kind !== 'discarded' && e.container === c.name && (!e.instance || e.instance === c.instance)) es.push(e);
    }
    list(recent, es, (e) => `${e.instance}/${e.id}`, (e) => {
      const el = h('li', {});
      eventLine(el, e);
      return el;
    });
  }

  return {el: root, draw, title: () => safe(name, 60), close: () => {
    clearTimeout(timer);
    aborter?.abort();
  }};
}
