// All containers: those that need a person first.
import {h, put, text, cls, list, count, rate, span, safe} from './dom.js';
import {store, idOf, many, sees} from './store.js';
import {spark} from './charts.js';
import {badge, setBadge, sentence, limited, advice, headline, fix, result, button, link} from './parts.js';

const weight = {problem: 0, notice: 1, ok: 2};

export function overview() {
  const title = h('h1', {});
  const tiles = ['Done', 'Backlog', 'Waiting for a retry', 'Dead-lettered'].map((t) => {
    const v = h('strong', {}), unit = h('small', {});
    return {el: h('div', {class: 'tile'}, h('span', {}, t), h('div', {}, v, unit)), v, unit};
  });
  const filter = h('input', {type: 'search', placeholder: 'Filter', 'aria-label': 'Filter containers', 'aria-keyshortcuts': '/', oninput: draw});
  const state = h('select', {'aria-label': 'State', onchange: draw}, h('option', {value: ''}, 'All states'), h('option', {value: 'need'}, 'Needs a person'),
    ['running', 'recovering', 'paused', 'stopped'].map((s) => h('option', {value: s}, s)));
  const instance = h('select', {'aria-label': 'Instance', onchange: draw, hidden: true});
  const empty = h('div', {class: 'empty', hidden: true});
  const columns = ['Container', 'State', 'Done /s', 'Backlog', 'Oldest', 'Workers', 'Done, 15 min', 'Retried', 'Parked', 'Dead'];
  const table = h('div', {class: 'grid', role: 'table', 'aria-label': 'Containers'},
    h('div', {class: 'head', role: 'row'}, columns.map((c, i) => h('span', {role: 'columnheader', class: 'c' + i}, c))));
  const body = h('div', {role: 'rowgroup', class: 'rows'});
  table.append(body);
  const hosts = h('div', {class: 'hosts'});
  const root = h('div', {class: 'overview'}, h('div', {class: 'lead'}, title, h('div', {class: 'tiles'}, tiles.map((t) => t.el))), hosts,
    h('div', {class: 'bar'}, filter, state, instance), table, empty);

  function make() {
    const cell = (i, label, ...kids) => h('span', {role: 'cell', class: 'c' + i, 'data-label': label}, ...kids);
    const r = {name: h('a', {class: 'name'}), source: h('small', {class: 'source'}), badge: badge(), rate: h('span', {}), backlog: h('span', {}), oldest: h('span', {}),
      workers: h('span', {}), bar: h('i', {}), spark: h('canvas', {class: 'spark', 'aria-hidden': 'true'}), retried: h('span', {}), parked: h('span', {}), dead: h('span', {}),
      why: h('p', {class: 'why'}), whyHead: h('strong', {}), whyText: h('span', {}), advice: h('span', {class: 'advice'}), out: result(), fix: h('span', {class: 'fix'})};
    put(r.why, r.whyHead, ' ', r.whyText, ' ', r.advice, r.fix, r.out);
    const el = h('div', {class: 'item'},
      h('div', {class: 'row-main', role: 'row'}, cell(0, '', r.name, r.source), cell(1, '', r.badge), cell(2, 'done/s', r.rate), cell(3, 'backlog', r.backlog), cell(4, 'oldest', r.oldest),
        cell(5, 'workers', h('span', {class: 'meter', 'aria-hidden': 'true'}, r.bar), r.workers), cell(6, '', r.spark), cell(7, 'retried', r.retried), cell(8, 'parked', r.parked), cell(9, 'dead', r.dead)),
      r.why);
    el.parts = r;
    return el;
  }

  function update(el, c) {
    const r = el.parts, s = store.series.get(idOf(c)), n = s ? s.at.length - 1 : -1;
    cls(el, `item is-${c.level}`);
    text(r.name, safe(c.name, 80));
    r.name.href = link(c);
    text(r.source, `${transports[c.transport] || c.transport} · ${safe(c.source, 80)}` + (many() ? ` · ${safe(c.instance, 40)}` : ''));
    setBadge(r.badge, c);
    text(r.rate, rate(c.rate));
    text(r.backlog, count(c.backlog));
    text(r.oldest, c.oldest ? span(c.oldest) : '–');
    text(r.workers, `${c.workers.busy} / ${c.workers.now}`);
    r.workers.title = `${c.workers.busy} busy of ${c.workers.now}, bounds ${c.workers.min} to ${c.workers.max}`;
    r.bar.style.width = `${Math.min(100, 100 * c.workers.busy / Math.max(c.workers.max, 1))}%`;
    text(r.retried, count(c.retried));
    text(r.parked, count(c.parked));
    text(r.dead, count(c.dead));
    cls(r.dead, c.dead ? 'some' : '');
    if (s) spark(r.spark, s.at, s.done, c.level === 'problem' ? 'bad' : 'accent');
    const shown = c.level !== 'ok';
    r.why.hidden = !shown;
    if (!shown) return;
    text(r.whyHead, headline(c) + (headline(c) ? '.' : ''));
    const s2 = limited(c);
    text(r.whyText, c.limited?.by || !s2 ? sentence(c) + (s2 ? '. ' + s2 : '') : s2);
    const f = fix(c), key = f ? f.label : '';
    text(r.advice, f ? '' : advice(c));
    if (r.fixed !== key) {
      r.fixed = key;
      put(r.fix, f && button(f.label, () => fix(el.c)?.run(r.out), 'small'));
    }
    el.c = c;
  }

  function draw() {
    const all = [...store.containers.values()], names = [...store.instances.keys()];
    if (instance.options.length !== names.length + 1) {
      const was = instance.value;
      put(instance, h('option', {value: ''}, 'All instances'), names.map((i) => h('option', {value: i}, safe(i, 60))));
      instance.value = was;
    }
    instance.hidden = names.length < 2;
    const need = all.filter((c) => c.level === 'problem').length, odd = all.filter((c) => c.level === 'notice').length;
    text(title, !all.length ? 'No containers' : need ? `${need} of ${all.length} container${all.length > 1 ? 's' : ''} need${need > 1 ? '' : 's'} you`
      : odd ? `Nothing is broken; ${odd} of ${all.length} ${odd > 1 ? 'are' : 'is'} held back` : all.length === 1 ? 'The container is well' : `All ${all.length} containers are well`);
    cls(title, need ? 'is-problem' : odd ? 'is-notice' : 'is-ok');
    const sum = (f) => all.reduce((n, c) => n + (f(c) || 0), 0);
    const v = [[rate(sum((c) => c.rate)), '/s'], [count(sum((c) => c.backlog)), all.some((c) => c.backlog === null) ? ' and unknown' : ''], [count(sum((c) => c.parked)), ''], [count(sum((c) => c.dead)), ' this run']];
    tiles.forEach((t, i) => {
      text(t.v, v[i][0]);
      text(t.unit, v[i][1]);
    });
    const q = filter.value.trim().toLowerCase();
    const shown = all.filter((c) => (!q || `${c.name} ${c.source} ${c.transport} ${c.instance}`.toLowerCase().includes(q)) &&
      (!instance.value || c.instance === instance.value) && (!state.value || (state.value === 'need' ? c.level === 'problem' : c.state === state.value)))
      .sort((a, b) => weight[a.level] - weight[b.level] || a.name.localeCompare(b.name) || String(a.instance).localeCompare(b.instance));
    list(body, shown, idOf, make, update);
    empty.hidden = shown.length > 0;
    table.hidden = shown.length === 0;
    text(empty, all.length ? 'No container matches the filter.' : store.link === 'connecting' ? 'Connecting…' : 'No containers: give admin.Config.Containers those that this page is to show.');
    drawHosts();
  }

  // Instances are shown where there are several, or one was restarted or does not answer.
  function drawHosts() {
    const all = [...store.instances.values()].filter((i) => many() || i.error || Date.now() - i.restarted < 600e3 && i.restarted);
    list(hosts, all, (i) => i.instance, () => h('span', {class: 'host'}), (el, i) => {
      cls(el, `host${i.error ? ' is-problem' : ''}`);
      const age = i.started ? (Date.now() - new Date(i.started)) / 1000 : 0;
      text(el, `${i.error ? '▲' : '●'} ${safe(i.instance, 60)} ` + (i.error ? `does not answer: ${safe(i.error, 120)}` : `up ${span(age)}` + (i.restarted ? `, restarted ${span((Date.now() - i.restarted) / 1000)} ago` : '')) + (i.version ? ` · ${safe(i.version, 40)}` : ''));
    });
    hosts.hidden = !all.length;
  }

  return {el: root, draw, focusFilter: () => filter.focus(), title: () => 'Overview', needsTexts: () => !sees()};
}

export const transports = {rabbitmq: 'RabbitMQ', kafka: 'Kafka', aws_sqs: 'SQS', memory: 'memory'};
