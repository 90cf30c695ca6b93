"use strict";
// What the page computes: no document, no drawing, so that it can be tested by itself.
const model = (() => {
  // prices are numbers, one for each count; a count without a price need not be known
  const paid = (prices) => prices.map((_, place) => place).filter((place) => prices[place] !== 0);
  function cost(means, prices) {
    const terms = paid(prices).map((place) => means[place] === null ? null : prices[place] * means[place]);
    return terms.includes(null) ? null : terms.reduce((sum, term) => sum + term, 0);
  }

  // mean and standard error of the sum of price times count, over the trials that ended
  function total(row, prices) {
    const mean = cost(row.means, prices);
    const places = paid(prices);
    const scatter = places.flatMap((one) => places.map((other) => {
      const covariance = row.covariance[Math.max(one, other)][Math.min(one, other)];
      return covariance === null ? null : prices[one] * prices[other] * covariance;
    }));
    if (mean === null || scatter.includes(null)) return { mean, sem: null };
    const variance = scatter.reduce((sum, term) => sum + term, 0);
    return { mean, sem: Math.sqrt(Math.max(0, variance) / row.ended) };
  }

  // mean total cost over the trials by which schedules are compared; null for one that is not
  const compared = (row, prices) => (row.compared === null ? null : cost(row.compared, prices));

  // the cheapest schedule of a cell: of equal ones the one that sends the least, as in `best`
  function winner(cell, prices, sent) {
    let best = null;
    for (const row of cell.rows) {
      const mean = compared(row, prices);
      if (mean === null) continue;
      const uplinks = row.compared[sent];
      if (best === null || mean < best.mean || (mean === best.mean && uplinks < best.uplinks))
        best = { mean, schedule: row.schedule, uplinks };
    }
    return best && best.schedule;
  }

  // the cost over FedElim0's, by the trials that both ended
  function ratio(row, prices) {
    if (row.beside === null) return null;
    const [own, other] = row.beside.map((means) => cost(means, prices));
    return own === null || !other ? null : own / other;
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
  function times(row, prices) {
    const value = ratio(row, prices);
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

  return { label, total, compared, ratio, times, winner, withError, short, rate, general, digits,
    quantiles };
})();
if (typeof module !== "undefined") module.exports = model;
