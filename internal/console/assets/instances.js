// Containers by instance: totals, one column for each instance, and what differs.
import {h, put, text, safe, count, rate} from './dom.js';
import {store, call} from './store.js';

const every = 2000;

export function instances() {
  const differences = h('ul', {}), table = h('table', {}), none = h('p', {class: 'muted'}), failed = h('p', {class: 'empty', hidden: true});
  const root = h('div', {class: 'compare'}, h('h1', {}, 'Instances'), h('h2', {}, 'Differences'), none, differences, failed, h('div', {class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Containers by instance'}, table));
  let shown = '', asking = false, last = 0;

  async function load() {
    if (asking || store.link !== 'live' || Date.now() - last < every) return;
    asking = true;
    try {
      const v = await call('GET', 'compare');
      failed.hidden = true;
      show(v);
    } catch (err) {
      failed.hidden = false;
      text(failed, err.status === 404 ? 'This page is of one instance: longshore console serves one for several.' : `${err.message}. ${err.help || ''}`);
    }
    last = Date.now();
    asking = false;
  }

  // cell is a container on one instance, in words.
  const cell = (p) => {
    if (!p) return h('td', {}, 'not there');
    const mark = p.status !== 'live' ? '○ no answer, was ' : p.level === 'problem' ? '▲ ' : p.level === 'notice' ? '‖ ' : '● ';
    return h('td', {}, `${mark}${p.state}`, h('br'), `${rate(p.rate)}/s, backlog ${count(p.backlog)}`, h('br'), `${p.workers} of ${p.min} to ${p.max} workers`, h('br'), p.permits === null ? 'no limit' : `${count(p.permits)} permits`);
  };

  function show(v) {
    const key = JSON.stringify(v);
    if (key === shown) return;
    shown = key;
    text(none, v.differences.length ? '' : 'The instances that answer have the same version, sources, worker bounds and limits.');
    put(differences, v.differences.map((d) => h('li', {}, h('b', {}, safe(`${d.container} ${d.what}`.trim(), 120)), ': ', d.values.map((x) => `${safe(x.value, 120)} on ${safe(x.instances.join(', '), 400)}`).join('; '))));
    const head = h('tr', {}, h('th', {scope: 'col'}, 'Container'), h('th', {scope: 'col'}, 'Total'), v.instances.map((i) => h('th', {scope: 'col'}, safe(i.instance, 60), i.version && h('small', {}, ` ${safe(i.version, 40)}`), i.status !== 'live' && h('small', {}, ' no answer'))));
    const rows = v.containers.map((c) => h('tr', {}, h('th', {scope: 'row'}, safe(c.name, 80)),
      h('td', {}, h('b', {}, `${rate(c.total.rate)}/s`), h('br'), `backlog ${count(c.total.backlog)}`, h('br'), `${c.total.busy} busy of ${c.total.workers} workers`, h('br'), `${count(c.total.parked)} parked, ${count(c.total.dead)} dead`),
      v.instances.map((i) => cell(c.parts[i.instance]))));
    put(table, h('thead', {}, head), h('tbody', {}, rows));
  }

  return {el: root, draw: load, title: () => 'Instances'};
}
