'use strict';
// Tables sort, filter and unfold; charts draw once the page was painted.

let data; // what charts show, see the type data in html.go
const byId = id => document.getElementById(id);
const count = n => new Intl.NumberFormat('en', {notation: 'compact', maximumSignificantDigits: 3}).format(n);
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(1) + ' %' : '-';
const sum = list => list.reduce((a, b) => a + b, 0);

function bytes(n) {
	const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0;
	while (n >= 1024 && i < names.length - 1) { n /= 1024; i++; }
	return +n.toFixed(1) + ' ' + names[i];
}

// text is an element with that text: names are never parsed as HTML.
function text(tag, content, className) {
	const e = document.createElement(tag);
	e.textContent = content;
	if (className) e.className = className;
	return e;
}

// escaped is for tooltips, which ECharts takes as HTML.
const escaped = s => String(s).replace(/[&<>"']/g, c => '&#' + c.charCodeAt(0) + ';');

// --- tables ---

const step = 15; // rows that a table begins with, as page.tmpl has them

function table(box) {
	const rows = [...box.querySelectorAll('tbody tr')], heads = [...box.querySelectorAll('thead th')];
	const search = box.querySelector('input'), more = box.querySelector('.more'), status = box.querySelector('[role=status]');
	let shown = step;
	const show = () => {
		const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
		const hit = rows.filter(r => words.every(w => found(r, w)));
		const seen = new Set(hit.slice(0, shown));
		for (const r of rows) r.hidden = !seen.has(r);
		more.hidden = hit.length <= shown;
		more.textContent = `Show ${Math.min(5 * step, hit.length - shown)} more of ${hit.length}`;
		status.textContent = words.length ? `${hit.length} of ${rows.length} rows` : '';
	};
	const sort = column => {
		const head = heads[column], down = head.getAttribute('aria-sort') ? head.getAttribute('aria-sort') === 'ascending' : head.classList.contains('n');
		for (const h of heads) h.removeAttribute('aria-sort');
		head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
		const key = rows.map(r => [sortKey(r.cells[column]), r]).sort((a, b) => compare(a[0], b[0]) * (down ? -1 : 1));
		rows.splice(0, rows.length, ...key.map(k => k[1]));
		box.querySelector('tbody').append(...rows);
		show();
	};
	heads.forEach((h, i) => h.firstChild.addEventListener('click', () => sort(i)));
	search.addEventListener('input', () => { shown = step; show(); });
	more.addEventListener('click', () => { shown += 5 * step; show(); });
	show();
}

const found = (row, word) => (row.textContent + ' ' + [...row.querySelectorAll('[title]')].map(e => e.title).join(' ')).toLowerCase().includes(word);
const sortKey = cell => cell.dataset.s === undefined ? cell.textContent : Number(cell.dataset.s);
const compare = (a, b) => typeof a === 'number' ? a - b : a.localeCompare(b, 'en', {numeric: true});

// --- theme and charts ---

const palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#8a8f98'];
const nodeColour = n => n < 0 ? '#00000000' : palette[n % palette.length];
const viridis = ['#440154', '#482878', '#3e4989', '#31688e', '#26828e', '#1f9e89', '#35b779', '#6ece58', '#b5de2b', '#fde725'];

const dark = () => (document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
let printing = false;
const charts = []; // functions that draw each anew
const sheet = {full: 690, half: 335}; // pixels: what A4 and Letter have room for

// colours are those of the style sheet in the present theme.
function colours() {
	const probe = document.body.appendChild(document.createElement('i'));
	const get = name => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
	const out = printing ? {text: '#1a1f26', faint: '#566070', line: '#dbe0e7', card: '#ffffff'}
		: {text: get('text'), faint: get('faint'), line: get('line'), card: get('card')};
	probe.remove();
	return out;
}

// chart draws option(colours) in the element of that id, now and whenever called again.
function chart(id, option, listen) {
	const box = byId(id);
	if (!box) return () => {};
	const c = echarts.init(box, null, {devicePixelRatio: Math.max(2, window.devicePixelRatio)});
	if (listen) c.on('click', listen);
	const draw = () => {
		if (printing) c.resize({width: box.closest('.columns') ? sheet.half : sheet.full});
		const k = {...colours(), narrow: c.getWidth() < 600};
		const o = option(k);
		box.setAttribute('aria-label', o.label);
		delete o.label;
		c.setOption({animation: false, textStyle: {color: k.text, fontFamily: getComputedStyle(document.body).fontFamily}, ...o}, true);
	};
	charts.push(draw);
	let width = c.getWidth();
	new ResizeObserver(() => {
		c.resize();
		if (width !== c.getWidth()) draw();
		width = c.getWidth();
	}).observe(box);
	draw();
	return draw;
}

const axis = (k, name, more) => ({
	name, nameLocation: 'middle', nameTextStyle: {color: k.faint}, axisLine: {lineStyle: {color: k.faint}}, axisTick: {show: false},
	axisLabel: {color: k.faint, hideOverlap: true}, splitLine: {lineStyle: {color: k.line}}, ...more,
});
const tooltip = (k, formatter, more) => ({backgroundColor: k.card, borderColor: k.line, textStyle: {color: k.text}, confine: true, formatter, ...more});

function themes() {
	const button = byId('theme');
	const name = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
	const redraw = () => { name(); for (const draw of charts) draw(); };
	button.addEventListener('click', () => { document.documentElement.dataset.theme = dark() ? 'light' : 'dark'; redraw(); });
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
	const print = now => {
		printing = now;
		if (!now) for (const box of document.querySelectorAll('.chart')) echarts.getInstanceByDom(box)?.resize({width: 'auto'});
		redraw();
	};
	addEventListener('beforeprint', () => print(true));
	addEventListener('afterprint', () => print(false));
	name();
}

// --- heatmap ---

const most = 64; // tiles on the screen
const heat = {map: null, from: 0, to: 0}; // tiles shown: [from, to)

// columnsOf is the columns by thread or by node, and the place of each of the data's.
function columnsOf(by) {
	if (by === 'thread') return [data.columns, data.columns.map((_, i) => i)];
	const nodes = [...new Set(data.columns.map(c => c.node))];
	return [nodes.map(n => ({node: n, name: 'node ' + n})), data.columns.map(c => nodes.indexOf(c.node))];
}

// view sums the tiles shown to at most `most`.
function view() {
	const {map, from, to} = heat, what = byId('heat-what').value === 'all' ? 2 : 1;
	const [columns, at] = columnsOf(byId('heat-axis').value);
	let tiles = 1;
	while ((to - from) / tiles > most) tiles *= 2;
	const rows = [];
	for (let t = from; t < to; t += tiles) {
		const row = {page: t * map.tile, pages: Math.min(tiles * map.tile, map.pages - t * map.tile), cells: new Map(), homes: new Map()};
		for (let i = t; i < Math.min(t + tiles, to); i++) {
			for (let c = 0; c < map.rows[i].length; c += 3) add(row.cells, at[map.rows[i][c]], map.rows[i][c + what]);
			for (let h = 0; h < map.homes[i].length; h += 2) add(row.homes, map.homes[i][h], map.homes[i][h + 1]);
		}
		rows.push(row);
	}
	return {columns, rows, tiles};
}

function add(map, key, n) {
	if (n > 0) map.set(key, (map.get(key) || 0) + n);
}

const span = row => row.pages === 1 ? `page ${row.page}` : `pages ${row.page} to ${row.page + row.pages - 1}`;
const homesText = row => [...row.homes].map(([n, c]) => `${n < 0 ? 'no home known' : 'node ' + n} ${percent(c, sum([...row.homes.values()]))}`).join(', ') || 'never touched';

// heatOption is three grids: the cells, above them the node of each column, and beside
// them the homes of each row.
function heatOption(k) {
	const {columns, rows} = view();
	const cells = rows.flatMap((r, y) => [...r.cells].map(([x, n]) => [x, y, Math.log10(n), n]));
	const high = Math.max(...cells.map(c => c[2]), 0.5), low = Math.min(...cells.map(c => c[2]), high - 0.5);
	const by = byId('heat-axis').value, what = byId('heat-what').selectedOptions[0].text;
	const right = k.narrow ? 70 : 120, side = {left: 90, right: right + 50}; // pixels
	const caption = {textStyle: {color: k.faint, fontSize: 12, fontWeight: 'normal'}};
	return {
		label: `Heatmap of ${heat.map.name}: ${what} by memory and ${by}, with the home of the pages`,
		grid: [{...side, top: 34, bottom: 50}, {...side, top: 18, height: 12}, {right, width: 34, top: 34, bottom: 50}],
		...heatAxes(k, columns.map(c => c.name.replace(/^\w+ /, '')), rows.map(r => bytes(4096 * r.page)), by),
		title: [{...caption, text: 'home', right: right + 2, top: 12}, {...caption, text: 'node', left: 50, top: 15}],
		visualMap: {
			seriesIndex: 0, dimension: 2, min: low, max: high, calculable: false, right: 10, top: 'middle', itemHeight: 260, itemWidth: k.narrow ? 12 : 20,
			inRange: {color: viridis}, textStyle: {color: k.faint}, text: [count(10 ** high), count(10 ** low)], formatter: v => count(10 ** v),
		},
		tooltip: tooltip(k, p => heatTip(p, rows, columns, what)),
		series: [
			{type: 'heatmap', data: cells, emphasis: {itemStyle: {borderColor: k.text, borderWidth: 1}}},
			{type: 'bar', xAxisIndex: 1, yAxisIndex: 1, barWidth: '100%', silent: true, data: columns.map(c => ({value: 1, itemStyle: {color: nodeColour(c.node)}}))},
			...homeSeries(rows),
		],
	};
}

function heatAxes(k, columns, offsets, by) {
	const hidden = {show: false}, whole = {type: 'value', max: 1, ...hidden};
	return {
		xAxis: [
			axis(k, by, {gridIndex: 0, type: 'category', data: columns, nameGap: 28}),
			{gridIndex: 1, type: 'category', data: columns, ...hidden},
			{gridIndex: 2, ...whole},
		],
		yAxis: [
			axis(k, 'offset in the object', {gridIndex: 0, type: 'category', data: offsets, inverse: true, nameGap: 74, splitLine: hidden}),
			{gridIndex: 1, ...whole},
			{gridIndex: 2, type: 'category', data: offsets, inverse: true, ...hidden},
		],
	};
}

// homeSeries is the share of each node in the pages of each row.
function homeSeries(rows) {
	const pages = rows.map(r => sum([...r.homes.values()]) || 1);
	return [...Array(data.nodes).keys()].map(n => ({
		type: 'bar', name: 'home', stack: 'home', xAxisIndex: 2, yAxisIndex: 2, barWidth: '100%', itemStyle: {color: nodeColour(n)},
		data: rows.map((r, i) => (r.homes.get(n) || 0) / pages[i]),
	}));
}

function heatTip(p, rows, columns, what) {
	if (p.seriesType !== 'heatmap') return escaped(`${span(rows[p.dataIndex])}: home ${homesText(rows[p.dataIndex])}`);
	const [x, y, , n] = p.value, c = columns[x];
	return escaped(`${c.name}${c.name.startsWith('node') ? '' : ' on node ' + c.node}: ${count(n)} ${what}`) + '<br>' + escaped(`${span(rows[y])}: home ${homesText(rows[y])}`);
}

function heatmap() {
	const object = byId('heat-object');
	if (!object) return;
	data.heat.forEach((m, i) => object.append(new Option(`${m.name} (${m.kind})`, i)));
	let draw = () => {};
	const show = (from, to) => {
		const all = heat.map.rows.length;
		heat.from = Math.max(0, Math.min(from, all - 1));
		heat.to = Math.min(all, Math.max(to, heat.from + 1));
		heatTexts();
		draw();
	};
	const choose = i => {
		heat.map = data.heat[i];
		object.value = i;
		if (!heat.map.rows.some(r => r.some((n, k) => k % 3 === 1 && n > 0))) byId('heat-what').value = 'all';
		for (const b of document.querySelectorAll('.pick')) b.closest('tr').classList.toggle('chosen', +b.dataset.object === heat.map.object + 1);
		show(0, heat.map.rows.length);
	};
	choose(0);
	draw = chart('heat-chart', heatOption, p => {
		const t = view().tiles, row = p.seriesType === 'heatmap' ? p.value[1] : p.dataIndex; // else a bar of homes
		if (t > 1) show(heat.from + Math.max(0, row - 4) * t, heat.from + (row + 4) * t);
	});
	object.addEventListener('change', () => choose(+object.value));
	for (const id of ['heat-axis', 'heat-what']) byId(id).addEventListener('change', () => show(heat.from, heat.to));
	const move = (id, f) => byId(id).addEventListener('click', () => show(...f(heat.from, heat.to, heat.to - heat.from)));
	move('heat-in', (a, b, n) => [a + Math.ceil(n / 4), b - Math.floor(n / 4)]);
	move('heat-out', (a, b, n) => [a - Math.ceil(n / 2), b + Math.ceil(n / 2)]);
	move('heat-up', (a, b, n) => [Math.max(0, a - Math.ceil(n / 2)), Math.max(0, a - Math.ceil(n / 2)) + n]);
	move('heat-down', (a, b, n) => { const e = Math.min(heat.map.rows.length, b + Math.ceil(n / 2)); return [e - n, e]; });
	move('heat-whole', () => [0, heat.map.rows.length]);
	for (const b of document.querySelectorAll('.pick')) {
		const i = data.heat.findIndex(m => m.object === b.dataset.object - 1);
		if (i < 0) b.disabled = true;
		else b.addEventListener('click', () => { choose(i); byId('heat').scrollIntoView(); object.focus({preventScroll: true}); });
	}
}

function heatTexts() {
	const {map, from, to} = heat, {tiles} = view();
	const last = Math.min(map.pages, to * map.tile);
	byId('heat-range').textContent = `${bytes(4096 * from * map.tile)} to ${bytes(4096 * last)} of ${bytes(4096 * map.pages)}, ${tiles * map.tile === 1 ? 'page by page' : tiles * map.tile + ' pages a tile'}`;
	byId('heat-in').disabled = to - from <= 1;
	byId('heat-up').disabled = from === 0;
	byId('heat-down').disabled = to === map.rows.length;
	byId('heat-out').disabled = byId('heat-whole').disabled = from === 0 && to === map.rows.length;
	const legend = byId('heat-legend');
	legend.replaceChildren(...[...Array(data.nodes).keys()].map(n => {
		const e = text('span', 'node ' + n), i = document.createElement('i');
		i.className = 'c' + n % 8;
		e.prepend(i);
		return e;
	}));
	byId('heat-about').replaceChildren(...map.about.flatMap(d => [text('dt', d.name), text('dd', d.text)]));
}

// --- node x node ---

function matrix() {
	if (!data.matrix) return;
	const what = byId('matrix-what');
	what.addEventListener('change', chart('matrix-chart', k => {
		const all = what.value === 'all', m = all ? data.matrix.all : data.matrix.dram, unknown = all ? data.matrix.all_unknown : data.matrix.dram_unknown;
		const total = sum(m.flat()) + sum(unknown), nodes = m.map((_, i) => i);
		const cells = m.flatMap((row, i) => row.map((n, j) => [j, i, n])).concat(unknown.map((n, i) => [m.length, i, n])).filter(c => c[0] < m.length || sum(unknown) > 0);
		const high = Math.max(...cells.map(c => c[2]), 1);
		return {
			label: `Node matrix of ${what.selectedOptions[0].text}: ${percent(sum(m.map((r, i) => r[i])), total)} of them local`,
			grid: {left: 60, right: k.narrow ? 65 : 90, top: 20, bottom: 50},
			xAxis: axis(k, 'memory of node', {type: 'category', data: sum(unknown) > 0 ? [...nodes, '?'] : nodes, nameGap: 28}),
			yAxis: axis(k, 'threads of node', {type: 'category', data: nodes, inverse: true, nameGap: 34}),
			visualMap: {min: 0, max: high, right: 6, top: 'middle', inRange: {color: viridis}, textStyle: {color: k.faint}, text: [percent(high, total), '0 %'], calculable: false, formatter: v => percent(v, total)},
			tooltip: tooltip(k, p => escaped(`threads of node ${p.value[1]}, memory of node ${p.value[0] === m.length ? 'not known' : p.value[0]}: ${count(p.value[2])}, ${percent(p.value[2], total)}`)),
			series: [{
				type: 'heatmap', data: cells.map(c => ({value: c, label: {color: c[2] > 0.6 * high ? '#000' : '#fff'}})), itemStyle: {borderColor: k.card, borderWidth: 1},
				label: {show: m.length <= 8, fontSize: k.narrow ? 10 : 12, formatter: p => percent(p.value[2], total)},
			}],
		};
	}));
}

// --- latency ---

// loads are those that the filters leave, by level and bucket: [accesses, cycles].
function loads(filtered) {
	const want = filtered ? ['object', 'loop', 'level'].map(f => byId('latency-' + f).value) : ['', '', ''];
	const out = new Map();
	for (const c of data.latency.cells) {
		if (want.some((w, i) => w !== '' && +w !== c[i])) continue;
		if (!out.has(c[2])) out.set(c[2], new Map());
		const old = out.get(c[2]).get(c[3]) || [0, 0];
		out.get(c[2]).set(c[3], [old[0] + c[4], old[1] + c[5]]);
	}
	return out;
}

// merged is all levels of loads together.
function merged(levels) {
	const out = new Map();
	for (const buckets of levels.values()) for (const [b, [n, c]] of buckets) {
		const old = out.get(b) || [0, 0];
		out.set(b, [old[0] + n, old[1] + c]);
	}
	return out;
}

function cdf(buckets) {
	const all = sum([...buckets.values()].map(v => v[0]));
	let below = 0;
	const points = [...buckets].sort((a, b) => a[0] - b[0]).map(([b, [n]]) => [data.latency.bounds[b], +(100 * (below += n) / all).toFixed(2)]);
	return points.length ? [[points[0][0], 0], ...points] : [];
}

// octaves sums buckets by powers of two of cycles.
function octaves(buckets) {
	const out = new Map();
	for (const [b, [n, c]] of buckets) {
		const top = 2 ** Math.ceil(Math.log2(data.latency.bounds[b]));
		const old = out.get(top) || [0, 0];
		out.set(top, [old[0] + n, old[1] + c]);
	}
	return [...out].sort((a, b) => a[0] - b[0]);
}

function cdfOption(k) {
	const levels = loads(true), chosen = merged(levels), line = (name, list, style) => ({name, type: 'line', step: 'end', showSymbol: false, data: list, ...style});
	const series = [line('all loads', cdf(merged(loads(false))), {lineStyle: {color: k.faint, type: 'dotted', width: 2}, itemStyle: {color: k.faint}}),
		line('chosen', cdf(chosen), {lineStyle: {color: k.text, width: 3}, itemStyle: {color: k.text}})];
	const types = ['solid', 'dashed', [2, 3], [8, 3, 2, 3]];
	if (levels.size > 1) [...levels].sort((a, b) => a[0] - b[0]).forEach(([l, b], i) => series.push(line(data.latency.levels[l], cdf(b), {lineStyle: {color: palette[i % 8], width: 1.5, type: types[i % 4]}, itemStyle: {color: palette[i % 8]}})));
	return {
		label: `Cumulative distribution of the latency of ${count(sum([...chosen.values()].map(v => v[0])))} loads`,
		grid: {left: 55, right: 20, top: k.narrow ? 100 : 60, bottom: 48},
		legend: {top: 0, textStyle: {color: k.text}},
		xAxis: axis(k, 'cycles', {type: 'log', logBase: 2, nameGap: 28}),
		yAxis: axis(k, 'loads that took no longer, %', {type: 'value', min: 0, max: 100, nameGap: 38}),
		tooltip: tooltip(k, list => escaped(`${count(list[0].value[0])} cycles`) + list.map(p => '<br>' + escaped(`${p.seriesName}: ${p.value[1]} %`)).join(''), {trigger: 'axis'}),
		series,
	};
}

function shareOption(k) {
	const list = octaves(merged(loads(true))), n = sum(list.map(o => o[1][0])), c = sum(list.map(o => o[1][1]));
	const bar = (name, colour, of, whole) => ({name, type: 'bar', itemStyle: {color: colour}, data: list.map(o => +(100 * o[1][of] / whole).toFixed(2))});
	return {
		label: 'Share of loads and of latency by ranges of latency',
		grid: {left: 55, right: 20, top: k.narrow ? 100 : 60, bottom: 48},
		legend: {top: 0, textStyle: {color: k.text}},
		xAxis: axis(k, 'cycles', {type: 'category', data: list.map(o => (o[0] > 1 ? o[0] / 2 + 1 : 1) + '–' + o[0]), nameGap: 28}),
		yAxis: axis(k, '%', {type: 'value', min: 0, nameGap: 38}),
		tooltip: tooltip(k, l => escaped(l[0].name + ' cycles') + l.map(p => '<br>' + escaped(`${p.seriesName}: ${p.value} %`)).join(''), {trigger: 'axis'}),
		series: [bar('of the loads', palette[4], 0, n), bar('of the latency', palette[5], 1, c)],
	};
}

function latency() {
	if (!data.latency) return;
	const used = [0, 1, 2].map(i => new Set(data.latency.cells.map(c => c[i])));
	['objects', 'loops', 'levels'].forEach((list, i) => data.latency[list].forEach((name, k) => {
		if (used[i].has(k)) byId('latency-' + ['object', 'loop', 'level'][i]).append(new Option(name, k));
	}));
	const draws = [chart('cdf-chart', cdfOption), chart('share-chart', shareOption)];
	const all = merged(loads(false)), total = sum([...all.values()].map(v => v[1]));
	const show = () => {
		const chosen = [...merged(loads(true)).values()], n = sum(chosen.map(v => v[0])), c = sum(chosen.map(v => v[1]));
		byId('latency-sum').textContent = n ? `${count(n)} loads, ${(c / n).toFixed(0)} cycles in the mean, ${percent(c, total)} of all latency` : 'No load has all of that.';
		for (const draw of draws) draw();
	};
	for (const f of ['object', 'loop', 'level']) byId('latency-' + f).addEventListener('change', show);
	show();
}

// --- timeline ---

// part is the place of a cell's rectangle, see custom series of ECharts.
function part(params, api) {
	const [x, y] = api.coord([api.value(1), api.value(0)]), [end] = api.coord([api.value(2), api.value(0)]);
	const height = Math.max(1, api.size([0, 1])[1] * 0.86), width = Math.max(1, end - x + 0.3);
	return {type: 'rect', shape: {x, y: y - height / 2, width, height}, style: {fill: api.visual('color')}};
}

function timelineOption(k, what) {
	const t = data.timeline;
	const key = {loop: c => c[3], node: c => c[4], remote: c => c[6]}[what];
	const names = {loop: t.loops, node: [...Array(data.nodes).keys()].map(n => 'node ' + n), remote: []}[what];
	const tip = c => escaped(`${t.tracks[c[0]]} on node ${t.nodes[c[0]]}, from ${t.moments[c[1]]}`) + '<br>' + escaped(t.loops[c[3]]) + '<br>' +
		escaped(`${count(c[5])} ${data.counted}` + (c[4] < 0 ? '' : `, most to node ${c[4]}, ${c[6]} % remote`));
	const series = what === 'remote' ? [{name: 'remote', data: t.cells.filter(c => c[6] >= 0)}]
		: names.map((name, i) => ({name, itemStyle: {color: nodeColour(i)}, data: t.cells.filter(c => key(c) === i)}));
	return {
		label: `Timeline of ${t.tracks.length} threads by ${what}`,
		grid: {left: 90, right: what === 'remote' ? 90 : 20, top: k.narrow ? 110 : 70, bottom: 50},
		legend: {show: what !== 'remote', top: 0, textStyle: {color: k.text}, data: names},
		xAxis: axis(k, t.unit, {type: 'value', min: 0, max: t.moments.length, nameGap: 28, splitLine: {show: false}, axisLabel: {color: k.faint, hideOverlap: true, formatter: i => t.moments[Math.floor(i)] || ''}}),
		yAxis: axis(k, '', {type: 'category', data: t.tracks, inverse: true, splitLine: {show: false}}),
		visualMap: what === 'remote' ? {dimension: 6, min: 0, max: 100, right: 6, top: 'middle', inRange: {color: viridis}, textStyle: {color: k.faint}, text: ['100 %', 'remote 0 %'], calculable: false} : undefined,
		tooltip: tooltip(k, p => tip(p.value)),
		series: series.map(s => ({...s, type: 'custom', renderItem: part, encode: {x: [1, 2], y: 0}})),
	};
}

function timeline() {
	if (!data.timeline) return;
	const what = byId('timeline-what');
	what.addEventListener('change', chart('timeline-chart', k => timelineOption(k, what.value)));
}

// --- start ---

// unpacked is the text of an element that was packed, see packed in html.go.
function unpacked(id) {
	const zipped = Uint8Array.from(atob(byId(id).textContent), c => c.charCodeAt(0));
	return new Response(new Blob([zipped]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));

async function drawAll() {
	await painted();
	const s = document.createElement('script');
	s.textContent = await unpacked('echarts');
	document.head.append(s);
	data = JSON.parse(await unpacked('data'));
	for (const draw of [heatmap, matrix, timeline, latency]) {
		draw();
		await painted();
	}
	document.documentElement.dataset.drawn = 'yes';
	performance.mark('drawn');
}

for (const box of document.querySelectorAll('.table')) table(box);
themes();
drawAll();
