"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byName = new Map(data.schedules.map((one) => [one.name, one]));
  const { find, make, save } = dom;
  const DELTA = "delta";

  // ---- what is shown
  const keys = data.cells.length ? Object.keys(data.cells[0].where) : [];
  const values = Object.fromEntries(keys.map((key) =>
    [key, [...new Set(data.cells.map((cell) => cell.where[key]))]]));
  const state = {
    where: Object.fromEntries(keys.map((key) => [key, values[key][0]])),
    cost: data.costs[Math.floor(data.costs.length / 2)] ?? 10,
    version: 0, selected: new Set(), hidden: new Set(), few: false, bounds: false, beside: null,
    sort: { column: "cost", down: false },
  };
  const matches = (cell, but) =>
    keys.every((key) => key === but || cell.where[key] === state.where[key]);
  const overDelta = () => data.cells.filter((cell) => matches(cell, DELTA));
  const NOTHING = { rows: [], pieces: [], where: {} };
  const here = () => data.cells.find((cell) => matches(cell)) ?? NOTHING;
  const seen = (cell) => cell.rows.filter((row) => !state.hidden.has(row.schedule));
  // one delta makes no axis: schedules stand along x
  const oneDelta = () => overDelta().length < 2;

  // ---- the cost: 0 at the slider's left end, then from 10^-2 to 10^6
  const slider = find("slider"), field = find("cost");
  const fromSlider = (at) => (at === 0 ? 0 : Number((10 ** (-2 + (at - 1) / 399 * 8)).toPrecision(3)));
  const toSlider = (cost) => (cost <= 0 ? 0
    : Math.round(Math.min(400, Math.max(1, 1 + (Math.log10(cost) + 2) / 8 * 399))));
  slider.addEventListener("input", () => setCost(fromSlider(Number(slider.value))));
  field.addEventListener("input", () => {
    const cost = Number(field.value);
    const fits = field.value !== "" && cost >= 0 && Number.isFinite(cost);
    find("wrong-cost").textContent = fits ? ""
      : `C must be a number from 0 on; the page still shows C = ${state.cost}`;
    field.setAttribute("aria-invalid", String(!fits));
    if (fits) setCost(cost, true);
  });
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  function setCost(cost, typed = false) {
    state.cost = cost;
    slider.value = toSlider(cost);
    slider.setAttribute("aria-valuetext", `C = ${cost}`);
    if (!typed) {
      field.value = cost;
      find("wrong-cost").textContent = "";
    }
    update();
  }

  // not every combination was run: what does not go with the new choice follows it
  const selects = new Map();
  function choose(key, value) {
    state.where[key] = value;
    const closest = (cell) => keys.filter((one) => cell.where[one] === state.where[one]).length;
    const possible = data.cells.filter((cell) => cell.where[key] === value);
    state.where = { ...possible.sort((a, b) => closest(b) - closest(a))[0].where };
    for (const [one, select] of selects) select.value = values[one].indexOf(state.where[one]);
    update();
  }

  function fillChoices() {
    for (const key of keys) {
      if (values[key].length < 2) continue;
      const select = make("select", {}, ...values[key].map((value, index) =>
        make("option", { value: index }, model.label(value, values[key]))));
      select.addEventListener("change", () => choose(key, values[key][Number(select.value)]));
      selects.set(key, select);
      find("choices").append(make("label", {}, make("span", {}, key), select));
    }
  }

  function fillAbout() {
    for (const [key, value] of Object.entries(data.about))
      find("about").append(make("dt", {}, key), make("dd", {}, value));
  }

  function swatch(one) {
    const box = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    box.setAttribute("width", 34);
    box.setAttribute("height", 12);
    box.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("d", "M0,6H34");
    line.setAttribute("stroke", dom.tint(one.colour));
    line.setAttribute("stroke-width", 2);
    if (one.dash[1]) line.setAttribute("stroke-dasharray", one.dash.join(","));
    const marker = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const outline = vega.path();
    vega.pathSymbols(one.shape).draw(outline, 45);
    marker.setAttribute("d", outline.toString());
    marker.setAttribute("transform", "translate(17,6)");
    marker.setAttribute("fill", dom.tint(one.colour));
    box.append(line, marker);
    return box;
  }

  function singleOut(name) {
    if (!state.selected.delete(name)) state.selected.add(name);
    markNames();
    update();
  }

  function showOnly(hidden, few = false) {
    state.few = few;
    state.hidden = hidden;
    markNames();
    update();
  }

  // which are shown, which are singled out, which are searched for
  function markNames() {
    const wanted = find("search").value.toLowerCase();
    for (const item of find("names").children) {
      const name = item.dataset.name;
      item.hidden = !`${name} ${byName.get(name).label}`.toLowerCase().includes(wanted);
      item.className = state.hidden.has(name) ? "hidden" : "";
      item.querySelector("input").checked = !state.hidden.has(name);
      item.querySelector("svg").replaceWith(swatch(byName.get(name)));
      item.querySelector("button").setAttribute("aria-pressed", String(state.selected.has(name)));
    }
    const count = data.schedules.length;
    find("schedules-title").textContent = state.hidden.size
      ? `Schedules: ${count - state.hidden.size} of ${count} shown` : `Schedules: all ${count} shown`;
  }

  // the paper's, the cheapest here, those that are cheapest most often at the sweep's costs, and
  // some of those that are cheapest here at another C: as many as can be told apart
  const FEW = 10;
  const wins = new Map();
  for (const cell of data.cells) for (const cost of data.costs) {
    const name = model.winner(cell, pricing.asked(cost), pricing.SENT);
    if (name !== null) wins.set(name, (wins.get(name) ?? 0) + 1);
  }
  const often = [...wins.keys()].sort((x, y) => wins.get(y) - wins.get(x));
  function cheapest() {
    const own = ["fedelim", "fedelim0", "adaptive"].filter((name) => byName.has(name));
    const now = model.winner(here(), prices(), pricing.SENT);
    const first = new Set([...own, ...(now === null ? [] : [now]), ...often]);
    const chosen = new Set([...first].slice(0, FEW));
    const rest = [...new Set(here().pieces.map((piece) => piece.winner))].filter((name) =>
      !chosen.has(name));
    const room = Math.min(FEW - chosen.size, rest.length);
    for (let at = 0; at < room; at += 1) chosen.add(rest[Math.floor((at + 0.5) * rest.length / room)]);
    return chosen;
  }
  // they follow C and the choices until the user shows or hides schedules
  function follow() {
    if (!state.few) return;
    const hidden = allBut(cheapest());
    if ([...hidden].join() === [...state.hidden].join()) return;
    state.hidden = hidden;
    markNames();
  }
  const allBut = (some) => new Set(data.schedules.map((one) => one.name).filter((name) =>
    !some.has(name)));

  function fillNames() {
    for (const one of data.schedules) {
      const button = make("button", { type: "button", "aria-pressed": "false" }, swatch(one),
        one.label);
      button.dataset.name = one.name;
      button.addEventListener("click", () => singleOut(one.name));
      const box = make("input", { type: "checkbox", checked: true,
        "aria-label": `show ${one.label}` });
      box.addEventListener("change", () => {
        if (box.checked) state.hidden.delete(one.name); else state.hidden.add(one.name);
        showOnly(state.hidden);
      });
      const item = make("li", {}, box, button);
      item.dataset.name = one.name;
      find("names").append(item);
    }
    find("search").addEventListener("input", markNames);
    find("all").addEventListener("click", () => showOnly(new Set()));
    find("none").addEventListener("click", () => showOnly(allBut(new Set())));
    find("few").addEventListener("click", () => showOnly(allBut(cheapest()), true));
    state.few = data.schedules.length > 2 * FEW;
    if (!state.few) find("schedules").open = true;
    markNames();
  }

  // ---- charts
  const point = (row, x, { mean, sem }) => ({
    schedule: row.schedule, name: byName.get(row.schedule).label, x, y: mean,
    low: sem === null ? mean : mean - sem, high: sem === null ? mean : mean + sem,
    shown: model.withError(mean, sem),
    on: !state.selected.size || state.selected.has(row.schedule),
  });
  const usable = (one) => one.y !== null && one.y > 0 && one.low > 0;
  const against = (measure) => () => overDelta().flatMap((cell) => seen(cell).map((row) =>
    point(row, cell.where[DELTA], measure(row))));
  const prices = (cost = state.cost) => pricing.at(cost);
  const total = (row, cost) => model.total(row, prices(cost));
  const COSTS = Array.from({ length: 33 }, (_, place) => 10 ** (-2 + place / 4));
  const againstCost = (cell = here()) => seen(cell).flatMap((row) =>
    COSTS.map((cost) => point(row, cost, total(row, cost))));
  const againstPeriod = (rows = seen(here())) => rows
    .filter((row) => byName.get(row.schedule).period !== null).map((row) =>
      point(row, byName.get(row.schedule).period, total(row)));
  // the line through all periods, hidden ones too, and level lines of schedules that have none
  const throughPeriods = () => againstPeriod(here().rows).filter(usable).sort((a, b) => a.x - b.x);
  function levels() {
    const found = seen(here()).filter((row) => byName.get(row.schedule).period === null).map((row) => {
      const { label, colour } = byName.get(row.schedule);
      return { y: total(row).mean, name: label, colour: dom.tint(colour), shift: 0 };
    }).filter((one) => one.y > 0).sort((a, b) => b.y - a.y);
    // the names of lines that lie close to each other stand side by side
    const logs = [...throughPeriods(), ...found].map((one) => Math.log(one.y));
    const near = 0.07 * (Math.max(...logs) - Math.min(...logs));
    found.forEach((one, place) => {
      const above = found[place - 1];
      if (above && Math.log(above.y / one.y) < near) one.shift = above.shift - 7 * above.name.length - 8;
    });
    return found;
  }
  function tradeOff() {
    return seen(here()).filter((row) => pricing.mean(row, "uplinks") > 0).map((row) =>
      point(row, pricing.mean(row, "uplinks"), model.total(row, pricing.only("pulls"))));
  }
  const errorRows = () => overDelta().flatMap(seen);
  // intervals from 0 on would look like a bar code: a sentence says as much
  function noErrors() {
    const rows = errorRows();
    if (!rows.length) return "No schedule is shown.";
    const most = Math.max(...rows.map((row) => row.error_high));
    return `No trial of these schedules erred. Their error rates are below `
      + `${model.general(100 * most, 2)} %, each with confidence 97.5 %.`;
  }
  function errorRates() {
    if (errorRows().every((row) => row.wrong === 0)) return [];
    // side by side; an interval that begins at 0 reaches to the foot of the axis
    const foot = 0.5 * Math.min(...overDelta().flatMap((cell) => [cell.where[DELTA],
      ...cell.rows.map((row) => (row.error_low > 0 ? row.error_low : row.error_high))]));
    const places = overDelta().map((cell) => Math.log(cell.where[DELTA])).sort((a, b) => a - b);
    const gap = Math.min(9, ...places.slice(1).map((place, at) => place - places[at]));
    const step = 0.35 * gap / Math.max(10, data.schedules.length - state.hidden.size);
    return overDelta().flatMap((cell) => seen(cell).map((row, place, rows) => ({
      ...point(row, cell.where[DELTA], { mean: row.error_high, sem: null }),
      x: cell.where[DELTA] * Math.exp(step * (place - (rows.length - 1) / 2)),
      low: Math.max(row.error_low, foot), high: row.error_high,
      shown: `${model.rate(row)} %` })));
  }
  // where the cheapest schedule changes, at the prices of the sweep
  function corners() {
    const cell = pricing.asAsked() ? here() : NOTHING;
    return cell.pieces.filter((piece) => piece.high !== null && piece.high > 0).map((piece) => {
      const row = cell.rows.find((one) => one.schedule === piece.winner);
      const [low, high] = piece.interval;
      return { x: piece.high, y: model.compared(row, prices(piece.high)),
        change: `C = ${model.digits(piece.high, 3)} [${model.digits(low, 3)}, `
          + `${high === null ? "no limit" : model.digits(high, 3)}]` };
    }).filter((one) => one.y > 0 && one.x >= COSTS[0] && one.x <= COSTS.at(-1));
  }
  function lowest() {
    const cell = here();
    return COSTS.map((cost) => ({ x: cost, y: Math.min(...cell.rows.map((row) =>
      model.compared(row, prices(cost)) ?? Infinity)) })).filter((one) => one.y > 0 && one.y < Infinity);
  }
  // T, 2T, 3T and the lower bound of pulls + C x uplinks, each with the largest C for which it is one
  function boundsOf(cell) {
    const { T, lower, three } = cell.bounds ?? {};
    // labels stand at a line's right end, side by side: the lines lie close to each other
    return [["lower bound", "pulls", 0, lower, Infinity], ["T", "FedElim0, pulls", -44, T, Infinity],
      ["2T", "FedElim, pulls", -22, T && 2 * T, Infinity],
      ["3T", "FedElim, total", 0, T && 3 * T, three]]
      .filter(([, , , y, most]) => state.bounds && pricing.onlyPulls() && y > 0 && most > 0)
      .map(([end, whose, shift, y, most]) => ({ label: `${end} (${whose})`, end, shift, y, most,
        shown: model.short(y) }));
  }
  function boundsOverDelta() {
    const smallest = Math.min(...overDelta().map((cell) => cell.where[DELTA]));
    return overDelta().flatMap((cell) => boundsOf(cell).filter((one) => state.cost <= one.most)
      .map((one) => ({ ...one, x: cell.where[DELTA],
        text: cell.where[DELTA] === smallest ? one.end : "" })));
  }
  function boundsOverCost() {
    return boundsOf(here()).flatMap((one) => [COSTS[0], Math.min(one.most, COSTS.at(-1))]
      .filter((x, place) => place === 0 || x > COSTS[0])
      .map((x, place) => ({ ...one, x, text: place ? one.end : "" })));
  }
  const deltas = () => overDelta().map((cell) =>
    ({ x: cell.where[DELTA], y: cell.where[DELTA], label: "delta", text: "",
      end: "delta", shown: "what is allowed" }));
  // what a chart shows beside the schedules: where its rows come from, and how they are drawn
  const EXTRAS = {
    now: (x) => [{ mark: { type: "rule", color: "#444", strokeDash: [3, 3] },
      encoding: { x: { field: "x", type: x.type } } }],
    corners: (x, y) => [{ mark: { type: "point", color: "#222" },
      encoding: { x, y, size: sized(90), tooltip: [{ field: "change", title: "the cheapest changes at" }] } }],
    lowest: (x, y) => [{ mark: { type: "line", color: "#888", opacity: 0.3, strokeWidth: 7 },
      encoding: { x, y } }],
    throughPeriods: (x, y) => [{ mark: { type: "line", color: "#000000", strokeWidth: 1.2 },
      encoding: { x, y } }],
    levels: (x, y) => {
      const color = { field: "colour", type: "nominal", scale: null };
      const opacity = { condition: { test: "datum.nothing", value: 0 }, value: 1 };
      return [{ mark: { type: "rule", strokeWidth: 1.6 }, encoding: { y, color, opacity } },
        { mark: { type: "text", align: "right", dy: -7, x: "width", fontSize: 11,
          dx: { expr: "datum.shift || 0" } },
          encoding: { y, color, opacity, text: { field: "name", type: "nominal" } } }];
    },
    bounds: guide, deltas: guide,
  };
  function guide(x, y) {
    if (x.type === "nominal") return [
      { mark: { type: "rule", color: "#555", strokeDash: [6, 3] }, encoding: { y,
        opacity: { condition: { test: "datum.nothing", value: 0 }, value: 1 } } },
      { mark: { type: "text", color: "#333", align: "right", dy: -7, x: "width", fontSize: 11,
        dx: { expr: "datum.shift || 0" } },
      encoding: { y, text: { field: "end", type: "nominal" } } }];
    const detail = { field: "label", type: "nominal" };
    const tooltip = [{ field: "label", title: "bound" }, { field: "shown", title: "value" }];
    return [{ mark: { type: "line", color: "#555", strokeDash: [6, 3], strokeWidth: 1.2 },
      encoding: { x, y, detail } },
    { mark: { type: "point", color: "#555", filled: true },
      encoding: { x, y, size: sized(14), tooltip } },
    { mark: { type: "text", color: "#333", align: "right", dy: -7, fontSize: 11,
      dx: { expr: "datum.shift || 0" } },
      encoding: { x, y, text: { field: "text", type: "nominal" } } }];
  }
  // Vega warns of data without rows: in their place is one that is on the chart, and has no size
  const orNothing = (found, { x, y }) => (found.length ? found : [{ x, y, text: "", end: "", nothing: true }]);
  const sized = (size) => ({ condition: { test: "datum.nothing", value: 0 }, value: size });
  const CHARTS = [
    { id: "total-cost", title: "Total cost against C", x: "cost C of an uplink",
      y: "total cost", rows: () => againstCost(), line: true, small: true, xFormat: "~g",
      extra: { lowest, corners, bounds: boundsOverCost,
        now: () => [{ x: Math.max(state.cost, COSTS[0]) }] },
      note: () => `Grey: the cheapest. Dashed: C = ${state.cost}.`
        + (pricing.asAsked() ? " Circles: where the cheapest changes." : ""),
      nothing: () => "No trial of these schedules ended." },
    { id: "total-period", title: "Total cost against the period", x: "period H (steps)",
      y: "total cost", rows: () => againstPeriod(), extra: { throughPeriods, levels },
      note: () => "The line goes through all periods. Level: schedules without one.",
      nothing: () => "None of these schedules has a period." },
    { id: "total-delta", title: "Total cost against delta", x: "error probability delta",
      y: "total cost", rows: against(total), line: true, turn: true, xFormat: "~g",
      extra: { bounds: boundsOverDelta }, byName: "Total cost by schedule",
      note: () => `Total cost: ${pricing.formula(state.cost)}.`,
      nothing: () => "No trial of these schedules ended." },
    { id: "communication-delta", title: "Communication against delta",
      x: "error probability delta", y: "C x uplinks",
      rows: against((row) => model.total(row, pricing.only("uplinks", state.cost))),
      line: true, turn: true, xFormat: "~g", byName: "Communication by schedule",
      nothing: () => `Communication costs nothing at C = ${state.cost}.` },
    { id: "trade-off", title: "Pulls against uplinks", x: "uplinks", y: "pulls", rows: tradeOff,
      note: () => "One point for each schedule. Both are less to the lower left.",
      nothing: () => "None of these schedules sends anything." },
    { id: "errors", title: "Error rates: exact 95 % intervals", x: "error probability delta",
      y: "error rate", rows: errorRates, turn: true, xFormat: "~g", bars: true, format: "~g",
      extra: { deltas }, byName: "Error rates by schedule: exact 95 % intervals",
      note: () => "Dashed: delta, the error probability that is allowed. An interval that begins at "
        + "0 reaches to the foot.", nothing: noErrors },
  ];

  const titleOf = (chart) => (chart.byName && oneDelta() ? chart.byName : chart.title);

  // very small numbers with a power of ten, large ones with a letter
  const NUMBER = "datum.value > 0 && datum.value < 1e-4 ? format(datum.value, '~e') "
    + ": format(datum.value, datum.value < 1000 ? '~g' : '~s')";
  // ``legend``: for a figure that leaves the page, whose buttons are not with it
  function specification(chart, legend = null) {
    const names = data.schedules.map((one) => one.name);
    const words = legend && { title: null, symbolSize: 80, symbolOpacity: 1, labelLimit: 260,
      values: names.filter((name) => legend.has(name)), columns: legend.size > 22 ? 2 : 1,
      labelExpr: `(${JSON.stringify(Object.fromEntries(data.schedules.map((one) =>
        [one.name, one.label])))})[datum.label]` };
    const scale = (field) => ({ field: "schedule", type: "nominal", legend: words,
      scale: { domain: names, range: data.schedules.map((one) => one[field]) } });
    const nominal = Boolean(chart.byName) && oneDelta();
    const x = nominal ? { field: "name", type: "nominal", title: "schedule",
      sort: { field: "y", op: "min" }, axis: { labelAngle: -45, labelLimit: 130 } }
      : { field: "x", type: "quantitative", title: chart.x,
        axis: { ...(chart.xFormat ? { labelExpr: NUMBER } : { format: "~s" }), tickCount: 6,
          ...(chart.turn ? { values: values[DELTA] } : {}), labelOverlap: true, labelSeparation: 4 },
        scale: { type: "log", reverse: Boolean(chart.turn), nice: false, padding: 12 } };
    const y = { field: "y", type: "quantitative", title: chart.y,
      axis: { format: chart.format ?? "~s", tickCount: 6, labelOverlap: true },
      scale: { type: "log", nice: false, padding: 10, ...(chart.domain ? { domain: chart.domain() } : {}) } };
    const opacity = { condition: { test: "datum.on", value: 1 }, value: 0.12 };
    const tooltip = [{ field: "name", title: "schedule" },
      ...(nominal ? [] : [{ field: "x", type: "quantitative", title: chart.x, format: "~g" }]),
      { field: "shown", title: chart.y }];
    const layer = [{ mark: { type: "rule" }, encoding: { x, opacity, color: scale("colour"),
      y: { ...y, field: "low" }, y2: { field: "high" } } }];
    if (chart.line && !nominal) layer.push({ mark: { type: "line", strokeWidth: 1.6, clip: true },
      encoding: { x, y, opacity, color: scale("colour"), strokeDash: scale("dash"), tooltip } });
    if (!chart.bars) layer.push({ mark: { type: "point", filled: true, size: chart.small ? 1 : 45 },
      encoding: { x, y, opacity, color: scale("colour"), shape: scale("shape"), tooltip } });
    else layer.push({ mark: { type: "tick", thickness: 2, size: 8 },
      encoding: { x, y, opacity, color: scale("colour"), tooltip } });
    for (const name of Object.keys(chart.extra ?? {}))
      layer.push(...EXTRAS[name](x, y).map((one) => ({ data: { name }, ...one })));
    return { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container",
      height: 280, autosize: { type: "fit", contains: "padding" },
      description: chart.title, data: { name: "points" }, layer };
  }

  const drawn = new Map(); // chart -> its figure, and its view once it has had something to show
  function placeChart(chart, parent) {
    const place = make("div", { className: "chart", role: "img",
      "aria-label": `${chart.title}; the table below has the numbers` });
    const head = make("h2", {}, chart.title);
    const save = dom.saveButtons(chart.title, (kind) => saveFigure(chart, kind));
    const note = make("p", { className: "note" }), buttons = make("p", { className: "save" }, ...save);
    const figure = make("figure", { id: chart.id }, head, place, note, buttons);
    find(parent).append(figure);
    drawn.set(chart, { place, head, note, buttons, view: null, mode: null, busy: false });
  }

  function rowsOf(chart) {
    const rows = chart.rows().filter(usable);
    const extra = rows.length ? Object.entries(chart.extra ?? {}).map(([name, found]) =>
      [name, orNothing(found(), rows[0])]) : [];
    return { points: rows, ...Object.fromEntries(extra) };
  }

  async function draw(chart) {
    const one = drawn.get(chart);
    if (one.busy) return; // what changes meanwhile is drawn afterwards
    one.busy = true;
    for (let wanted = -1; wanted !== state.version;) {
      wanted = state.version;
      const datasets = rowsOf(chart);
      const nothing = datasets.points.length === 0;
      one.place.hidden = one.buttons.hidden = nothing;
      one.head.textContent = titleOf(chart);
      one.note.textContent = (nothing ? chart.nothing : chart.note)?.() ?? "";
      if (nothing) continue;
      // what a view cannot change is drawn anew
      const mode = `${dom.dark.matches} ${oneDelta()} ${chart.domain ? chart.domain() : ""}`;
      if (one.view === null || one.mode !== mode) {
        one.view?.finalize();
        one.mode = mode;
        one.view = await dom.draw(one.place, { ...specification(chart), datasets });
        one.view.addEventListener("click", (_, item) => {
          if (item?.datum?.schedule) singleOut(item.datum.schedule);
        });
      } else {
        for (const [name, found] of Object.entries(datasets)) one.view.data(name, found);
        await one.view.resize().runAsync();
      }
    }
    one.busy = false;
  }

  // a choice that is the same in all rows is said once, at the top of the page
  const whereText = (but = null) => Object.entries(state.where).filter(([key]) => key !== but
    && (["instance", DELTA].includes(key) || values[key].length > 1)).map(([key, value]) => `${key} ${model.label(value, values[key])}`).join(", ");

  function saveFigure(chart, kind) {
    const datasets = rowsOf(chart);
    const legend = new Set(datasets.points.map((one) => one.schedule));
    const but = chart.turn && !oneDelta() ? DELTA : null;
    return dom.saveFigure({ ...specification(chart, legend), datasets }, [titleOf(chart),
      `${whereText(but)}${chart.x.startsWith("cost C") ? "" : `, C = ${state.cost}`}${pricing.text()}`, chart.note?.() ?? ""],
    chart.id, kind);
  }

  // ---- several values of one choice side by side: the same chart, on the same axes
  const besides = [];
  function fillBeside() {
    const several = keys.filter((key) => key !== DELTA && values[key].length > 1);
    if (!several.length) return;
    find("beside-label").hidden = false;
    find("beside-key").append(...["no", ...several].map((key) => make("option", { value: key }, key)));
    find("beside-key").addEventListener("change", (event) => {
      state.beside = event.target.value === "no" ? null : event.target.value;
      for (const chart of besides.splice(0)) {
        drawn.get(chart).view?.finalize();
        drawn.delete(chart);
      }
      find("beside").replaceChildren();
      for (const value of state.beside === null ? [] : values[state.beside]) {
        const key = state.beside;
        const cell = () => data.cells.find((one) => one.where[key] === value
          && matches(one, key)) ?? NOTHING;
        const chart = { id: `beside-${besides.length}`, x: "cost C of an uplink", y: "total cost",
          title: `Total cost against C: ${key} ${model.label(value, values[key])}`,
          line: true, small: true, xFormat: "~g", rows: () => againstCost(cell()),
          domain: besideDomain, nothing: () => "It was not run with what is chosen above." };
        besides.push(chart);
        placeChart(chart, "beside");
      }
      update();
    });
  }
  function besideDomain() {
    const all = besides.flatMap((chart) => chart.rows()).filter(usable);
    return [Math.min(...all.map((one) => one.low)), Math.max(...all.map((one) => one.high))];
  }

  // ---- the table
  const COLUMNS = [
    { key: "schedule", head: "schedule", text: (row) => byName.get(row.schedule).label,
      sort: (row) => data.schedules.findIndex((one) => one.name === row.schedule) },
    { key: "cost", head: "total ± sem",
      text: (row) => { const found = total(row);
        return model.withError(found.mean, found.sem) + (row.ended < row.trials ? "*" : ""); },
      sort: (row) => total(row).mean ?? Infinity },
    { key: "total-quantiles", head: "total 5 / 50 / 95 %",
      text: (row) => model.quantiles(spread(row)), sort: (row) => spread(row)?.[1] ?? Infinity },
    ...["pulls", "uplinks"].map((name) => ({ key: name, head: name,
      text: (row) => model.short(pricing.mean(row, name)), sort: (row) => pricing.mean(row, name) })),
    { key: "errors", head: "error % [95 %]", text: (row) => model.rate(row),
      sort: (row) => row.wrong / row.trials },
    { key: "ratio", head: "x FE0", text: (row) => model.times(row, prices()),
      sort: (row) => model.ratio(row, prices()) ?? Infinity },
  ];
  // the total's are known at the costs and prices of the sweep only
  const spread = (row) => row.quantiles?.total[pricing.asAsked() ? data.costs.indexOf(state.cost) : -1];
  const trialsText = (rows) => [...new Set([Math.min, Math.max].map((end) =>
    model.short(end(...rows.map((row) => row.trials)))))].join(" to ");

  function updateTable() {
    const head = make("tr", {}, ...COLUMNS.map((column) => {
      const chosen = column.key === state.sort.column;
      const button = make("button", { type: "button" },
        column.head + (chosen ? (state.sort.down ? " ▼" : " ▲") : ""));
      button.addEventListener("click", () => {
        state.sort = { column: column.key, down: chosen && !state.sort.down };
        updateTable();
        find("table").querySelectorAll("thead button")[COLUMNS.indexOf(column)].focus();
      });
      return make("th", { scope: "col",
        "aria-sort": chosen ? (state.sort.down ? "descending" : "ascending") : "none" }, button);
    }));
    const column = COLUMNS.find((one) => one.key === state.sort.column);
    const rows = seen(here()).sort((a, b) => (column.sort(a) - column.sort(b)) * (state.sort.down ? -1 : 1));
    find("table").tHead.replaceChildren(head);
    find("table").tBodies[0].replaceChildren(...rows.map((row) =>
      make("tr", { className: !state.selected.size ? "" : state.selected.has(row.schedule)
        ? "single" : "other" }, ...COLUMNS.map((one) => make("td", {}, one.text(row))))));
    find("table-title").textContent = `Summary: ${whereText()}, C = ${state.cost}${pricing.text()}`
      + (rows.length ? `, ${trialsText(rows)} trials` : "");
  }

  function updateCheapest() {
    const name = model.winner(here(), prices(), pricing.SENT);
    const piece = here().pieces.find((one) =>
      one.low <= state.cost && (one.high === null || state.cost <= one.high));
    // a rival is a name, or a name and the ranges of C where it may be as cheap
    const near = ([, where]) => where === undefined || where.some(([low, high]) =>
      low <= state.cost && (high === null || state.cost <= high));
    const rivals = (piece?.rivals ?? []).map((one) => [one].flat()).filter(near)
      .map(([rival]) => byName.get(rival).label);
    const row = here().rows.find((one) => one.schedule === name);
    const found = row ? total(row) : {};
    const paper = here().rows.find((one) => one.schedule === "fedelim" && name !== "fedelim");
    const times = paper && found.mean ? total(paper).mean / found.mean : null;
    find("cheapest").textContent = name === null ? "" : `Cheapest at C = ${state.cost}${pricing.text()}: `
      + `${byName.get(name).label}, total ${model.withError(found.mean, found.sem)}`
      + (times === null ? "" : `; fedelim costs ${model.digits(times, 3)} times as much`);
    find("rivals").textContent = !pricing.asAsked()
      ? `How sure that is at these prices: fastfed best --price ${pricing.option()}` : !rivals.length ? ""
      : `Not separable from it: ${rivals.slice(0, 8).join(", ")}`
      + (rivals.length > 8 ? ` and ${rivals.length - 8} more` : "");
    find("excluded").textContent = Object.entries(here().excluded ?? {}).map(([excluded, why]) =>
      `excluded: ${byName.get(excluded).label}, ${why}`).join("; ");
  }

  function saveData() {
    const quote = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
    const fields = ["schedule", "trials", "ended", "wrong", "error_low", "error_high"];
    const shares = ["pulls", "uplinks"].flatMap((what) => ["q05", "q50", "q95"].map((share) =>
      `${what}_${share}`));
    const lines = [[...keys, ...fields, ...pricing.counts, ...pricing.pairs, ...shares].join(",")];
    for (const cell of data.cells) for (const row of cell.rows)
      lines.push([...keys.map((key) => cell.where[key]), ...fields.map((key) => row[key]),
        ...row.means, ...row.covariance.flat(),
        ...(row.quantiles ? [...row.quantiles.pulls, ...row.quantiles.uplinks]
          : shares.map(() => null))].map(quote).join(","));
    save("fastfed.csv", new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  }

  function update() {
    follow();
    state.version += 1;
    for (const chart of drawn.keys()) draw(chart);
    updateTable();
    updateCheapest();
    verdictView.update(here());
    compareView.update();
  }

  fillAbout();
  fillChoices();
  pricing.fill(update);
  fillNames();
  find("csv").addEventListener("click", saveData);
  find("bounds").addEventListener("change", (event) => {
    state.bounds = event.target.checked;
    update();
  });
  find("bounds").parentElement.hidden = !data.cells.some((cell) => cell.bounds);
  CHARTS.forEach((chart, place) => placeChart(chart, place < 2 ? "lead" : "charts"));
  fillBeside();
  verdictView.fill(data, byName);
  compareView.fill(data, state, keys);
  dom.dark.addEventListener("change", () => {
    markNames();
    update();
  });
  setCost(state.cost);
})();
