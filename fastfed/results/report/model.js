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

  // the cheapest schedule of a cell: of equal ones the one that talks least, as in `best`
  function winner(cell, cost) {
    let best = null;
    for (const row of cell.rows) {
      const { mean } = total(row, cost);
      if (mean === null) continue;
      if (best === null || mean < best.mean || (mean === best.mean && row.uplinks < best.uplinks))
        best = { mean, schedule: row.schedule, uplinks: row.uplinks };
    }
    return best && best.schedule;
  }

  function grouped(text) {
    const [whole, rest] = text.split(".");
    const sign = whole.startsWith("-") ? "-" : "";
    const digits = whole.slice(sign.length).replace(/\B(?=(\d{3})+$)/g, ",");
    return sign + digits + (rest === undefined ? "" : "." + rest);
  }

  // 1e+05 as 1e5
  function tidy(text) {
    return text.replace(/e\+?(-?)0*(\d)/, "e$1$2");
  }

  // like C's %.{digits}g
  function general(value, digits) {
    if (value === 0) return "0";
    const scientific = value.toExponential(digits - 1);
    const power = Number(scientific.split("e")[1]);
    const strip = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (power < -4 || power >= digits) {
      const [mantissa, exponent] = scientific.split("e");
      return tidy(`${strip(mantissa)}e${exponent}`);
    }
    return strip(value.toFixed(Math.max(0, digits - 1 - power)));
  }

  function alone(value) {
    return Math.abs(value) >= 1000 && Math.abs(value) < 1e10
      ? grouped(value.toFixed(0)) : general(value, 6);
  }

  // 473,427 ± 1,260: both in one notation, as many digits as the error allows
  function withError(value, error) {
    if (value === null) return "none ended";
    if (error === null) return alone(value);
    if (error <= 1e-12 * Math.abs(value)) return `${alone(value)} ± 0`;
    let digits = Math.max(0, 1 - Math.floor(Math.log10(error)));
    const text = `${grouped(value.toFixed(digits))} ± ${grouped(error.toFixed(digits))}`;
    if (text.length <= 20) return text;
    const power = Math.floor(Math.log10(Math.max(Math.abs(value), error)));
    const unit = 10 ** power;
    digits = Math.max(0, 1 - Math.floor(Math.log10(error / unit)));
    if (digits > 6) return `${general(value, 7)} ± ${general(error, 2)}`;
    return `(${(value / unit).toFixed(digits)} ± ${(error / unit).toFixed(digits)})e${power}`;
  }

  function short(value) {
    if (value === null) return "";
    return value >= 1000 && value < 9999999 ? grouped(value.toFixed(0)) : general(value, 4);
  }

  function percent(value) {
    const number = 100 * value;
    return number >= 99.5 ? number.toFixed(0) : general(number, 2);
  }

  function rate(row) {
    return `${percent(row.wrong / row.trials)} [${percent(row.error_low)}, `
      + `${percent(row.error_high)}]`;
  }

  return { total, communication, winner, withError, short, rate, general };
})();
if (typeof module !== "undefined") module.exports = model;
