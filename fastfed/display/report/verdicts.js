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

  // a line: claim, cost, mean, bound, verdict, reason, and the power if it is not refuted
  const VERDICT = 4;
  const tightness = ([, , mean, bound]) => (mean === null || !bound ? null : mean / bound);

  function fill(all, names) {
    [data, byName] = [all, names];
    if (!data.claims) return;
    find("verdicts").hidden = false;
    const every = data.cells.flatMap((cell) => Object.values(cell.lines).flat());
    const used = data.verdicts.map((_, at) => at).filter((at) =>
      every.some((line) => line[VERDICT] === at));
    table("claims", ["claim, over all cells", ...used.map((at) => data.verdicts[at]),
      "measured / bound"], data.claims.map((claim, place) => {
      const lines = every.filter((line) => line[0] === place);
      const ratios = lines.map(tightness).filter((value) => value !== null);
      return [claim, ...used.map((at) => String(lines.filter((line) => line[VERDICT] === at).length)),
        ratios.length ? `${model.digits(Math.min(...ratios), 2)} to ${model.digits(Math.max(...ratios), 2)}`
          : ""];
    }));
  }

  function update(cell) {
    if (!data.claims) return;
    table("lines", ["claim", "schedule", "C", "mean", "bound", "measured / bound", "verdict"],
      Object.entries(cell.lines).flatMap(([schedule, lines]) => lines.map((line) => {
        const [claim, cost, mean, bound, verdict, reason, power] = line;
        return [data.claims[claim], byName.get(schedule)?.label ?? schedule,
          cost === null ? "" : model.short(cost), model.short(mean), model.short(bound),
          tightness(line) === null ? "" : model.digits(tightness(line), 3), data.verdicts[verdict]
          + (power === undefined ? "" : ` (power ${model.general(power, 2)})`)
          + (data.reasons[reason] ? `: ${data.reasons[reason]}` : "")];
      })));
  }

  return { fill, update };
})();
