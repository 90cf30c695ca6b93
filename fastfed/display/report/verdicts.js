"use strict";
// Verdicts of `fastfed check`, claim by claim and line by line.
const verdictView = (() => {
  const { find, make } = dom;
  let data = null, byName = null;

  const table = (id, heads, rows) => {
    find(id).tHead.replaceChildren(make("tr", {}, ...heads.map((head) =>
      make("th", { scope: "col" }, head))));
    find(id).tBodies[0].replaceChildren(...rows.map((row) =>
      make("tr", {}, ...row.map((text) => make("td", {}, text)))));
  };

  // a few digits, and no power of ten where none is needed
  const ratio = (value, digits) => model.short(Number(model.general(value, digits)));

  function fill(all, names) {
    [data, byName] = [all, names];
    if (!data.claims) return;
    find("verdicts").hidden = false;
    const every = data.cells.flatMap((cell) => cell.lines);
    const used = data.verdicts.map((_, at) => at).filter((at) =>
      every.some((line) => line[6] === at));
    table("claims", ["claim, over all cells", ...used.map((at) => data.verdicts[at]),
      "measured / bound"], data.claims.map((claim, place) => {
      const lines = every.filter((line) => line[0] === place);
      const ratios = lines.map((line) => line[5]).filter((value) => value !== null);
      return [claim, ...used.map((at) => String(lines.filter((line) => line[6] === at).length)),
        ratios.length ? `${ratio(Math.min(...ratios), 2)} to ${ratio(Math.max(...ratios), 2)}`
          : ""];
    }));
  }

  function update(cell) {
    if (!data.claims) return;
    table("lines", ["claim", "schedule", "C", "mean", "bound", "measured / bound", "verdict"],
      cell.lines.map(([claim, schedule, cost, mean, bound, tightness, verdict, power, reason]) =>
        [data.claims[claim], byName.get(schedule)?.label ?? schedule,
          cost === null ? "" : model.short(cost), model.short(mean), model.short(bound),
          tightness === null ? "" : ratio(tightness, 3), data.verdicts[verdict]
          + (data.verdicts[verdict] === "not refuted" && power !== null
            ? ` (power ${model.general(power, 2)})` : "")
          + (data.reasons[reason] ? `: ${data.reasons[reason]}` : "")]));
  }

  return { fill, update };
})();
