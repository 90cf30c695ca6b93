"use strict";
// What the page computes: no document, no drawing, so that it can be tested by itself.
const model = (() => {
  // mean and standard error of pulls + C x uplinks, over the trials that ended
  function total(row, cost) {
    if (row.pulls === null) return { mean: null, sem: null };
    const mean = row.pulls + cost * row.uplinks;
    if (row.var_pulls === null) return { mean, sem: null };
    const variance = row.var_pulls + 2 * cost * row.covariance + cost * cost * row.var_uplinks;
    return { mean, sem: Math.sqrt(Math.max(0, variance) / row.ended) };
  }

  function communication(row, cost) {
    if (row.uplinks === null) return { mean: null, sem: null };
    const sem = row.var_uplinks === null ? null
      : cost * Math.sqrt(Math.max(0, row.var_uplinks) / row.ended);
    return { mean: cost * row.uplinks, sem };
  }

  // mean total cost over the trials by which schedules are compared; null for one that is not
  function compared(row, cost) {
    return row.compared === null ? null : row.compared[0] + cost * row.compared[1];
  }

  // the cheapest schedule of a cell: of equal ones the one with the fewest uplinks, as in `best`
  function winner(cell, cost) {
    let best = null;
    for (const row of cell.rows) {
      const mean = compared(row, cost);
      if (mean === null) continue;
      const uplinks = row.compared[1];
      if (best === null || mean < best.mean || (mean === best.mean && uplinks < best.uplinks))
        best = { mean, schedule: row.schedule, uplinks };
    }
    return best && best.schedule;
  }

  // the cost over FedElim0's, by the trials that both ended
  function ratio(row, cost) {
    if (row.beside === null) return null;
    const [pulls, uplinks, otherPulls, otherUplinks] = row.beside;
    const other = otherPulls + cost * otherUplinks;
    return other === 0 ? null : (pulls + cost * uplinks) / other;
  }

  // ---- numbers as text, all by Intl: halves are rounded to the even digit, as in Python
  const FORMATS = new Map();
  function formatted(value, options) {
    const key = JSON.stringify(options);
    if (!FORMATS.has(key)) FORMATS.set(key,
      new Intl.NumberFormat("en-US", { roundingMode: "halfEven", ...options }));
    return FORMATS.get(key).format(value);
  }

  // like Python's {:,.{places}f}
  const fixed = (value, places) => formatted(value,
    { minimumFractionDigits: places, maximumFractionDigits: places });

  // like Python's {:.{digits}g}, with 1e5 for 1e+05
  function general(value, digits) {
    const options = { maximumSignificantDigits: digits, useGrouping: false };
    const scientific = formatted(value, { ...options, notation: "scientific" }).replace("E", "e");
    const power = Number(scientific.split("e")[1]);
    return power < -4 || power >= digits ? scientific : formatted(value, options);
  }

  function alone(value) {
    return Math.abs(value) >= 1000 && Math.abs(value) < 1e10
      ? fixed(value, 0) : general(value, 6);
  }

  // 473,427 ± 1,260: both in one notation, as many digits as the error allows
  function withError(value, error) {
    if (value === null) return "none ended";
    if (error === null) return alone(value);
    if (error <= 1e-12 * Math.abs(value)) return `${alone(value)} ± 0`;
    let digits = Math.max(0, 1 - Math.floor(Math.log10(error)));
    if (Math.max(Math.abs(value), error) < 1e21) {
      const text = `${fixed(value, digits)} ± ${fixed(error, digits)}`;
      if (text.length <= 20) return text;
    }
    const power = Math.floor(Math.log10(Math.max(Math.abs(value), error)));
    const unit = 10 ** power;
    digits = Math.max(0, 1 - Math.floor(Math.log10(error / unit)));
    if (digits > 6) return `${general(value, 7)} ± ${general(error, 2)}`;
    return `(${fixed(value / unit, digits)} ± ${fixed(error / unit, digits)})e${power}`;
  }

  function short(value) {
    if (value === null) return "";
    return value >= 1000 && value < 9999999 ? fixed(value, 0) : general(value, 4);
  }

  function percent(value) {
    const number = 100 * value;
    return number >= 99.5 ? fixed(number, 0) : general(number, 2);
  }

  function rate(row) {
    return `${percent(row.wrong / row.trials)} [${percent(row.error_low)}, `
      + `${percent(row.error_high)}]`;
  }

  // a few digits, and no power of ten where none is needed
  const digits = (value, count) => short(Number(general(value, count)));

  // the mean total over FedElim0's, as the summary prints it
  function times(row, cost) {
    const value = ratio(row, cost);
    return value === null ? "" : digits(value, 3);
  }

  // 5 %, 50 %, 95 %; of the total only at the costs of the sweep
  function quantiles(three) {
    return three ? three.map(short).join(" / ") : "";
  }

  // a parameter, with four digits or as many more as it takes to write different ones differently
  function label(value, all) {
    if (typeof value !== "number") return String(value);
    for (let digits = 4; digits < 17; digits += 1)
      if (all.every((one) => one === value || general(one, digits) !== general(value, digits)))
        return general(value, digits);
    return String(value);
  }

  return { label, total, compared, communication, ratio, times, winner, withError, short, rate, general, digits,
    quantiles };
})();
if (typeof module !== "undefined") module.exports = model;
