"use strict";
// Paired ratios between the values of one choice, as a table and as a figure.
const compareView = (() => {
  const { find, make } = dom;
  const STEP = 14; // pixels of a line of the figure
  let data = null, keys = [], state = null, view = null, drawn = "", wanted = "", busy = false;
  const chosen = { by: null, measure: 0 };
  const table = () => data.compare[chosen.by];

  function fill(all, shown, names) {
    [data, state, keys] = [all, shown, names];
    const choices = Object.keys(data.compare ?? {});
    if (!choices.length) return;
    find("compare").hidden = false;
    find("compare-by").append(...choices.map((by) => make("option", { value: by }, by)));
    find("compare-by").addEventListener("change", () => choose(find("compare-by").value));
    find("compare-measure").addEventListener("change", () => {
      chosen.measure = Number(find("compare-measure").value);
      update();
    });
    find("compare-save").append(...dom.saveButtons("Compare", save));
    choose(choices[0], false);
  }

  function choose(by, redraw = true) {
    chosen.by = by;
    const measures = table().measures ?? [];
    // the total at the highest cost is what the choice is about, if there is one
    const totals = measures.filter((one) => one.startsWith("total")).length;
    chosen.measure = Math.max(0, totals - 1);
    find("compare-measure").replaceChildren(...measures.map((measure, place) =>
      make("option", { value: place }, measure)));
    find("compare-measure").value = chosen.measure;
    find("compare-measure").parentElement.hidden = !measures.length;
    if (redraw) update();
  }

  // the lines of what is chosen above
  const lines = () => (table().lines ?? []).filter((line) => {
    const { where } = data.cells[line.cell];
    return !state.hidden.has(line.schedule)
      && keys.every((key) => key === chosen.by || where[key] === state.where[key]);
  });
  const label = (line) => data.schedules.find((one) => one.name === line.schedule).label;
  const value = (line) => (chosen.by === "schedule" ? label(line) : String(line.value));

  const text = (ratio) => ratio?.[4] ?? ""; // as `fastfed compare` prints it

  function updateTable() {
    const { measures, message, notes, count, level } = table();
    const found = lines();
    const several = new Set(found.map((line) => line.reference)).size > 1;
    const heads = [...(chosen.by === "schedule" ? [] : [["schedule", label]]), [chosen.by, value],
      ...(several ? [["reference", (line) => String(line.reference)]] : [])];
    find("compare-table").tHead.replaceChildren(make("tr", {}, ...[...heads.map(([head]) => head),
      ...(measures ?? [])].map((head) => make("th", { scope: "col" }, head))));
    find("compare-table").tBodies[0].replaceChildren(...found.map((line) => make("tr", {},
      ...heads.map(([, of]) => make("td", {}, of(line))),
      ...measures.map((_, place) => make("td", { className: line.ratios[place]?.[3] ? "single" : "" },
        text(line.ratios[place]))))));
    find("compare-table").hidden = !found.length;
    find("compare-note").textContent = message ?? [...notes,
      `Mean cost over that of ${several ? "the reference" : found[0]?.reference ?? "the reference"}, `
      + "in the same trials, all else equal. Intervals in "
      + `brackets hold together with a probability of 95 % (${count.toLocaleString("en-US")} `
      + `comparisons, each at ${model.general(100 * level, 6)} %). Bold: separated from 1.`].join(" ");
  }

  // Vega keeps names as keys of objects, where "constructor" is taken: it gets their places,
  // and labels that begin with a space of no width
  function points() {
    const places = new Map([...new Set(lines().map(value))].map((one, place) => [one, place]));
    return lines().filter((line) => line.ratios[chosen.measure]?.[0] > 0).map((line) => {
      const ratio = line.ratios[chosen.measure];
      const mean = ratio[0], [low, high] = text(ratio) === "equal" ? [mean, mean] : ratio.slice(1);
      // an interval without an end reaches to the edge of the figure
      return { name: label(line), place: places.get(value(line)), value: value(line), ratio: mean, shown: text(ratio),
        low: low > 0 ? low : mean / 10, high: high ?? mean * 10 };
    });
  }

  function specification(rows) {
    const values = new Map(rows.map((row) => [row.place, row.value]));
    const places = [...values.keys()];
    const texts = JSON.stringify([...values.values()].map((one) => `\u200b${one}`));
    const ofSchedules = chosen.by === "schedule";
    const y = { field: "name", type: "nominal", sort: null, title: null, axis: { labelLimit: 170 } };
    const yOffset = ofSchedules || places.length < 2 ? {}
      : { yOffset: { field: "place", type: "nominal", sort: null } };
    const x = { field: "ratio", type: "quantitative", axis: { format: "~g", labelOverlap: true },
      title: `${table().measures[chosen.measure]}, ratio to ${lines()[0].reference}`,
      scale: { type: "log", nice: false, padding: 12 } };
    const color = ofSchedules ? { value: data.colours[0] } : { field: "place", type: "nominal",
      legend: { title: chosen.by, orient: "bottom", columns: 3, labelLimit: 200,
        labelExpr: `(${texts})[indexof(${JSON.stringify(places)}, datum.value)]` },
      scale: { domain: places, range: places.map((_, place) => data.colours[place % data.colours.length]) } };
    const tooltip = [{ field: "name", title: "schedule" },
      ...(ofSchedules ? [] : [{ field: "value", title: chosen.by }]), { field: "shown", title: "ratio" }];
    return { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container",
      height: STEP * rows.length + 90, autosize: { type: "fit", contains: "padding" },
      description: "Ratios and their intervals", data: { values: rows }, layer: [
        { data: { values: [{ one: 1 }] }, mark: { type: "rule", color: "#444", strokeDash: [4, 4] },
          encoding: { x: { ...x, field: "one" } } },
        { mark: { type: "rule", strokeWidth: 2 }, encoding: { y, ...yOffset, color,
          x: { ...x, field: "low" }, x2: { field: "high" }, tooltip } },
        { mark: { type: "point", filled: true, size: 40, opacity: 1 },
          encoding: { y, ...yOffset, color, x, tooltip } }] };
  }

  async function draw() {
    if (busy) return; // what changes meanwhile is drawn afterwards
    busy = true;
    while (drawn !== wanted) {
      drawn = wanted;
      const rows = points();
      find("compare-figure").hidden = !rows.length;
      view?.finalize();
      view = rows.length ? await dom.draw(find("compare-chart"), specification(rows)) : null;
    }
    busy = false;
  }

  const title = () => `${table().measures[chosen.measure]} by ${chosen.by}, over that of `
    + `${lines()[0].reference}`;
  function save(kind) {
    const where = keys.filter((key) => key !== chosen.by).map((key) => `${key} ${state.where[key]}`);
    return dom.saveFigure(specification(points()), [title(), where.join(", ")], "compare", kind);
  }

  function update() {
    if (!chosen.by) return;
    updateTable();
    const rows = points();
    if (rows.length) find("compare-head").textContent = title();
    wanted = JSON.stringify([rows, chosen, dom.dark.matches]);
    draw();
  }

  return { fill, update };
})();
