// Draws the charts of a page: values under a pointer, another scale, zooming. Each box has the numbers of its curves in
// data-chart, and a table with a row for each point, which is shown where this script does not run.
"use strict";
(() => {
  const LEFT = 52, RIGHT = 390, TOP = 28, BOTTOM = 212, WIDTH = 400, HEIGHT = 250;
  const UNITS = [[2e9, 1e9, " G"], [2e6, 1e6, " M"], [2e4, 1e3, " k"]]; // from which size on, what it is, its name
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

  const place = (value) => Math.round(value * 10) / 10; // a tenth of a unit is finer than any screen

  // A map from values to places, with ticks where people expect them; what lies outside is put on the rim.
  function axis(low, high, start, end, log, whole) {
    const at = (value) => {
      const inside = Math.min(Math.max(value, low), high);
      const part = log ? Math.log(inside / low) / Math.log(high / low) : (inside - low) / (high - low);
      return start + part * (end - start);
    };
    return { low, high, at, ticks: log ? decades(low, high) : steps(low, high, whole) };
  }

  function decades(low, high) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    if (last < first) return [[low, low.toPrecision(2)], [high, high.toPrecision(2)]];
    const every = Math.max(1, Math.ceil((last - first + 1) / 7)), ticks = [];
    for (let e = first; e <= last; e += every) {
      ticks.push([10 ** e, "10" + (e < 0 ? "⁻" : "") + [...String(Math.abs(e))].map((d) => RAISED[d]).join("")]);
    }
    return ticks;
  }

  function steps(low, high, whole) {
    const rough = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough));
    const fine = unit * [1, 2, 5, 10].find((m) => unit * m >= rough * 0.999), step = whole ? Math.max(fine, 1) : fine;
    const [, scale, name] = UNITS.find(([from]) => Math.max(Math.abs(low), Math.abs(high)) >= from) || [0, 1, ""];
    const digits = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9)), ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9); k++) {
      const text = ((k * step) / scale).toFixed(digits).replace("-", "−");
      ticks.push([k * step, text + (k ? name : "")]);
    }
    return ticks;
  }

  function element(parent, name, attributes = {}, text = undefined) {
    const space = name === "svg" ? SVG : parent.namespaceURI;
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function button(parent, text, act) {
    const made = element(parent, "button", { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  }

  class Chart {
    constructor(parent, panel, box) {
      Object.assign(this, { panel, box, log: panel.log, window: null, chosen: null });
      this.bars = panel.curves.some((curve) => curve.style === "bar");
      const figure = element(parent, "figure");
      this.svg = element(figure, "svg", {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: 0, role: "slider", "aria-label": panel.label,
        "aria-valuemin": 1, "aria-valuemax": box.notes.length,
      });
      const drawn = panel.curves.filter((curve) => curve.values.some((value) => value !== null));
      if (drawn.length > 1) {
        const legend = element(figure, "p", { class: "legend" });
        for (const curve of drawn) {
          const entry = element(legend, "span");
          element(entry, "i", { class: curve.style });
          entry.append(curve.name);
        }
      }
      this.tools(element(figure, "div", { class: "tools" }));
      this.listen();
    }

    tools(bar) {
      this.log &&= this.values().length > 0;
      if (!this.bars && this.values().some((value) => value > 0)) {
        const scale = button(bar, "log scale", () => {
          this.log = !this.log;
          scale.setAttribute("aria-pressed", this.log);
          this.draw();
        });
        scale.setAttribute("aria-pressed", this.log);
      }
      button(bar, "Zoom in", () => this.zoom(0.5));
      this.whole = button(bar, "Reset", () => this.look(null));
    }

    listen() {
      let from = null;
      const at = (event) => {
        const box = this.svg.getBoundingClientRect();
        return ((event.clientX - box.left) / box.width) * WIDTH;
      };
      this.svg.addEventListener("pointermove", (event) => {
        this.box.point(this.nearest(at(event)));
        if (from !== null) this.shade(from, at(event));
      });
      this.svg.addEventListener("pointerdown", (event) => {
        this.box.point(this.nearest(at(event)));
        if (event.pointerType === "mouse" && event.button === 0) from = at(event);
      });
      this.svg.addEventListener("pointerup", (event) => {
        const [a, b] = [from, at(event)].sort((p, q) => p - q);
        if (from !== null && b - a > 8) this.look([this.value(a), this.value(b)]);
        from = null;
        this.shade();
      });
      this.svg.addEventListener("pointerleave", (event) => {
        from = null;
        this.shade();
        if (event.pointerType === "mouse" && document.activeElement !== this.svg) this.box.point(null);
      });
      this.svg.addEventListener("dblclick", () => this.look(null));
      this.svg.addEventListener("focus", () => this.box.point(this.chosen ?? this.x.length - 1));
      this.svg.addEventListener("blur", () => this.box.point(null));
      this.svg.addEventListener("keydown", (event) => {
        const now = this.chosen ?? this.x.length - 1, last = this.x.length - 1;
        const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last };
        if (event.key in moves) this.box.point(Math.min(Math.max(moves[event.key], 0), last));
        else if (event.key === "+") this.zoom(0.5);
        else if (event.key === "-") this.zoom(2);
        else if (event.key === "Escape") this.look(null);
        else return;
        event.preventDefault();
      });
    }

    // What runs along the bottom: seconds begin at zero, what is counted at one. Bars end where the next would begin.
    run(name, x) {
      const last = x[x.length - 1], end = this.bars ? 2 * last - x[x.length - 2] : last;
      const start = name === "seconds" ? 0 : x[0];
      Object.assign(this, { name, x, start, end: end > start ? end : start + 1 });
      this.middle = x.map((value, i) => (this.bars ? (value + (x[i + 1] ?? end)) / 2 : value));
      this.look(null);
    }

    value(position) {
      const part = (Math.min(Math.max(position, LEFT), RIGHT) - LEFT) / (RIGHT - LEFT);
      return this.across.low + part * (this.across.high - this.across.low);
    }

    nearest(position) {
      const away = this.middle.map((middle) => Math.abs(middle - this.value(position)));
      return away.indexOf(Math.min(...away));
    }

    zoom(factor) {
      const half = ((this.across.high - this.across.low) * factor) / 2;
      const middle = this.middle[this.chosen ?? this.x.length - 1];
      this.look([middle - half, middle + half]);
    }

    look(window) {
      if (window) window = [Math.max(window[0], this.start), Math.min(window[1], this.end)];
      if (window && window[1] - window[0] < 1e-9 * (this.end - this.start)) return;
      this.window = window && (window[0] > this.start || window[1] < this.end) ? window : null;
      this.draw();
    }

    // All values that have a place on this scale, in a window or anywhere.
    values(window = null) {
      const [from, to] = window || [-Infinity, Infinity];
      const seen = (i) => !window || (this.x[i] <= to && (this.x[i + 1] ?? Infinity) >= from);
      return this.panel.curves.flatMap(({ values }) => values.filter((value, i) => this.known(value) && seen(i)));
    }

    known(value) {
      return value !== null && (value > 0 || !this.log);
    }

    // The range of values, with some air. The goal is in sight where the whole is, on the scale that has room for it.
    limits() {
      const { floor, goal } = this.panel, inside = this.values(this.window);
      const values = inside.length ? inside : this.values();
      if (this.log && goal && !this.window) values.push(goal);
      const low = Math.max(Math.min(...values), floor ?? -Infinity), high = Math.max(...values, low);
      if (this.bars) return [0, high * 1.05 || 1];
      if (this.log) return [low / 1.2, high * 1.2];
      const margin = 0.05 * (high - low || Math.abs(high) || 1);
      return [low < 0 ? low - margin : Math.max(low - margin, 0), high + margin];
    }

    draw() {
      this.across = axis(...(this.window || [this.start, this.end]), LEFT, RIGHT, false, this.x.every(Number.isInteger));
      this.up = axis(...this.limits(), BOTTOM, TOP, this.log);
      this.svg.replaceChildren();
      this.whole.disabled = !this.window;
      this.frame();
      const { goal, curves } = this.panel;
      if (goal && goal >= this.up.low && goal <= this.up.high) {
        const y = place(this.up.at(goal));
        element(this.svg, "line", { x1: LEFT, x2: RIGHT, y1: y, y2: y, class: "goal" });
        element(this.svg, "text", { x: LEFT + 4, y: y - 5, class: "goal-name" }, `goal ${goal}`);
      }
      // Lines end where they meet: the end of each shows around that of the next.
      this.dots = curves.map((curve, k) => this.line(curve, curves.length - 1 - k));
      this.cross = element(this.svg, "line", { y1: TOP, y2: BOTTOM, class: "cross" });
      this.shaded = element(this.svg, "rect", { y: TOP, height: BOTTOM - TOP, class: "shade", width: 0 });
      this.point(this.chosen);
    }

    frame() {
      for (const [value, name] of this.up.ticks) {
        const y = place(this.up.at(value));
        element(this.svg, "line", { x1: LEFT, x2: RIGHT, y1: y, y2: y, class: "grid" });
        element(this.svg, "text", { x: LEFT - 6, y, dy: "0.35em", "text-anchor": "end" }, name);
      }
      for (const [value, name] of this.across.ticks) {
        const x = place(this.across.at(value));
        element(this.svg, "line", { x1: x, x2: x, y1: BOTTOM, y2: BOTTOM + 4, class: "axis" });
        element(this.svg, "text", { x, y: BOTTOM + 17, "text-anchor": "middle" }, name);
      }
      element(this.svg, "line", { x1: LEFT, x2: RIGHT, y1: BOTTOM, y2: BOTTOM, class: "axis" });
      element(this.svg, "text", { x: RIGHT, y: HEIGHT - 6, "text-anchor": "end", class: "measure" }, this.name);
      element(this.svg, "text", { x: 4, y: 12, class: "measure" }, this.panel.label);
    }

    // Steps from point to point; bars are the area below them. Returns the dot that shows where the pointer is.
    line(curve, behind) {
      let path = "", last = -1;
      curve.values.forEach((value, i) => {
        if (!this.known(value) || (this.window && this.x[i] > this.window[1])) return;
        const x = place(this.across.at(this.x[i])), y = place(this.up.at(value));
        path += path === "" ? `M${x} ${this.bars ? BOTTOM : y}V${y}` : `H${x}V${y}`;
        last = i;
      });
      if (path === "") return null;
      if (this.bars) path += `H${place(this.across.at(this.end))}V${BOTTOM}`;
      else if (this.window && last + 1 < this.x.length) path += `H${RIGHT}`;
      element(this.svg, "path", { d: path, class: `line ${curve.style}` });
      const cx = place(this.across.at(this.x[last])), cy = place(this.up.at(curve.values[last]));
      if (!this.bars) element(this.svg, "circle", { cx, cy, r: 3.2 + 1.8 * behind, class: curve.style });
      return element(this.svg, "circle", { r: 4.5, class: `dot ${curve.style}` });
    }

    point(i) {
      this.chosen = i;
      const x = i === null ? NaN : this.middle[i], seen = x >= this.across.low && x <= this.across.high;
      const position = seen ? place(this.across.at(x)) : 0;
      this.cross.setAttribute("visibility", seen ? "visible" : "hidden");
      this.cross.setAttribute("x1", position);
      this.cross.setAttribute("x2", position);
      this.dots.forEach((dot, k) => {
        if (!dot) return;
        const value = seen ? this.panel.curves[k].values[i] : null, shown = this.known(value);
        dot.setAttribute("visibility", shown ? "visible" : "hidden");
        if (shown) {
          dot.setAttribute("cx", position);
          dot.setAttribute("cy", place(this.up.at(value)));
        }
      });
      if (i === null) return;
      this.svg.setAttribute("aria-valuenow", i + 1);
      this.svg.setAttribute("aria-valuetext", this.box.notes[i]);
    }

    shade(a, b) {
      const [left, right] = a === undefined ? [0, 0] : [Math.min(a, b), Math.max(a, b)];
      this.shaded.setAttribute("x", Math.max(left, LEFT));
      this.shaded.setAttribute("width", Math.max(0, Math.min(right, RIGHT) - Math.max(left, LEFT)));
    }
  }

  // Panels over the same points, with a switch for what runs along the bottom.
  class Box {
    constructor(box) {
      const { along, panels } = JSON.parse(box.dataset.chart);
      const table = box.querySelector("details"), rows = [...table.querySelectorAll("tr")];
      const [head, ...cells] = rows.map((row) => [...row.cells].map((cell) => cell.textContent));
      this.notes = cells.map((row) => row.map((text, k) => `${head[k]} ${text}`).join(", "));
      const known = ({ values }) => values.filter((value) => value !== null);
      const shown = panels.filter(({ curves }) => curves.some((c) => known(c).length > 1 && known(c).some(Boolean)));
      if (!shown.length) return;
      const switches = element(box, "div", { class: "tools" }), charts = element(box, "div", { class: "charts" });
      this.charts = shown.map((panel) => new Chart(charts, panel, this));
      const buttons = along.map(([name, x]) => button(switches, name, () => run(name, x)));
      const run = (name, x) => {
        for (const made of buttons) made.setAttribute("aria-pressed", made.textContent === name);
        for (const chart of this.charts) chart.run(name, x);
      };
      run(...along[0]);
      switches.hidden = along.length < 2;
      this.output = element(box, "output", { class: "readout" });
      table.open = false;
      box.append(table);
      this.point(null);
    }

    point(i) {
      const rest = "Point, touch or use the arrow keys for values; drag, or press + and −, to zoom in.";
      this.output.textContent = i === null ? rest : this.notes[i];
      for (const chart of this.charts) chart.point(i);
    }
  }

  document.querySelectorAll("[data-chart]").forEach((box) => new Box(box));
})();
