// What a page with charts can do beyond its still pictures: values under a pointer, another scale, zooming.
// Each box has its numbers in data-curves, and one drawing per panel for everything that may run along the bottom.
"use strict";
(() => {
  const LEFT = 52, RIGHT = 390, TOP = 28, BOTTOM = 212, HEIGHT = 250;
  const UNITS = [[2e9, 1e9, " G"], [2e6, 1e6, " M"], [2e4, 1e3, " k"]];
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

  const known = (value) => value !== null && Number.isFinite(value);
  const place = (value) => Math.round(value * 10) / 10;

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

  function element(parent, name, attributes, text) {
    const made = parent.ownerDocument.createElementNS(parent.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  class Chart {
    constructor(figure, panel, [along, x, counted], curves) {
      Object.assign(this, { svg: figure.querySelector("svg"), panel, along, x, counted, curves });
      this.start = counted ? 1 : 0;
      this.log = panel.scale === "log";
      this.window = null;
      this.svg.setAttribute("tabindex", "0");
      this.svg.setAttribute("role", "slider");
      this.svg.setAttribute("aria-valuemin", "1");
      this.svg.setAttribute("aria-valuemax", String(x.length));
      this.tools(figure);
      this.listen();
      this.draw();
    }

    tools(figure) {
      const bar = element(figure, "div", { class: "tools" });
      const button = (text, act) => {
        const made = element(bar, "button", { type: "button" }, text);
        made.addEventListener("click", act);
        return made;
      };
      if (this.panel.log && this.panel.linear) {
        const scale = button("log scale", () => {
          this.log = !this.log;
          scale.setAttribute("aria-pressed", String(this.log));
          this.draw();
        });
        scale.setAttribute("aria-pressed", String(this.log));
      }
      button("Zoom in", () => this.zoom(0.5));
      this.whole = button("Reset", () => this.look(null));
    }

    listen() {
      let from = null;
      const at = (event) => {
        const box = this.svg.getBoundingClientRect();
        return ((event.clientX - box.left) / box.width) * 400;
      };
      this.svg.addEventListener("pointermove", (event) => {
        this.curves.point(this.nearest(at(event)));
        if (from !== null) this.shade(from, at(event));
      });
      this.svg.addEventListener("pointerdown", (event) => {
        this.curves.point(this.nearest(at(event)));
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
        if (event.pointerType === "mouse" && document.activeElement !== this.svg) this.curves.point(null);
      });
      this.svg.addEventListener("dblclick", () => this.look(null));
      this.svg.addEventListener("focus", () => this.curves.point(this.curves.chosen ?? this.x.length - 1));
      this.svg.addEventListener("blur", () => this.curves.point(null));
      this.svg.addEventListener("keydown", (event) => {
        const now = this.curves.chosen ?? this.x.length - 1, last = this.x.length - 1;
        const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last };
        if (event.key in moves) this.curves.point(Math.min(Math.max(moves[event.key], 0), last));
        else if (event.key === "+") this.zoom(0.5);
        else if (event.key === "-") this.zoom(2);
        else if (event.key === "Escape") this.look(null);
        else return;
        event.preventDefault();
      });
    }

    value(position) {
      const part = (Math.min(Math.max(position, LEFT), RIGHT) - LEFT) / (RIGHT - LEFT);
      return this.across.low + part * (this.across.high - this.across.low);
    }

    nearest(position) {
      const value = this.value(position);
      let best = 0;
      this.x.forEach((x, i) => {
        if (Math.abs(x - value) < Math.abs(this.x[best] - value)) best = i;
      });
      return best;
    }

    zoom(factor) {
      const half = ((this.across.high - this.across.low) * factor) / 2;
      const middle = this.x[this.curves.chosen ?? this.x.length - 1];
      this.look([middle - half, middle + half]);
    }

    look(window) {
      const first = this.start, last = this.x[this.x.length - 1];
      if (window) window = [Math.max(window[0], first), Math.min(window[1], last)];
      if (window && window[1] - window[0] < 1e-9 * (last - first || 1)) return;
      this.window = window && (window[0] > first || window[1] < last) ? window : null;
      this.draw();
    }

    // The range of values: the one given for the whole, and what is in sight for a part.
    limits() {
      const whole = this.log ? this.panel.log : this.panel.linear;
      if (!this.window) return whole;
      let low = Infinity, high = -Infinity;
      for (const line of this.panel.lines) {
        line.values.forEach((value, i) => {
          const next = i + 1 < this.x.length ? this.x[i + 1] : Infinity;
          const seen = this.x[i] <= this.window[1] && next >= this.window[0];
          if (seen && known(value) && (value > 0 || !this.log)) {
            low = Math.min(low, value);
            high = Math.max(high, value);
          }
        });
      }
      if (low > high) return whole;
      low = Math.max(low, whole[0]);
      if (this.log) return [low / 1.2, high * 1.2];
      const margin = 0.06 * (high - low || Math.abs(high) || 1);
      return [low - margin, high + margin];
    }

    draw() {
      const end = this.x[this.x.length - 1];
      const [from, to] = this.window || [this.start, end > this.start ? end : this.start + 1];
      this.across = axis(from, to, LEFT, RIGHT, false, this.counted);
      this.up = axis(...this.limits(), BOTTOM, TOP, this.log);
      const title = this.svg.querySelector("title");
      this.svg.replaceChildren(title);
      this.whole.disabled = !this.window;
      this.frame();
      if (this.panel.goal && this.panel.goal[0] >= this.up.low && this.panel.goal[0] <= this.up.high) {
        const y = place(this.up.at(this.panel.goal[0]));
        element(this.svg, "line", { x1: LEFT, x2: RIGHT, y1: y, y2: y, class: "goal" });
        element(this.svg, "text", { x: LEFT + 4, y: y - 5, class: "goal-name" }, this.panel.goal[1]);
      }
      this.dots = this.panel.lines.map((line, k) => this.line(line, this.panel.lines.length - 1 - k));
      this.cross = element(this.svg, "line", { y1: TOP, y2: BOTTOM, class: "cross" });
      this.shaded = element(this.svg, "rect", { y: TOP, height: BOTTOM - TOP, class: "shade", width: 0 });
      this.point(this.curves.chosen);
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
      element(this.svg, "text", { x: RIGHT, y: HEIGHT - 6, "text-anchor": "end", class: "measure" }, this.along);
      element(this.svg, "text", { x: 4, y: 12, class: "measure" }, this.panel.label);
    }

    line(line, behind) {
      let path = "", last = -1, before = null;
      line.values.forEach((value, i) => {
        if (!known(value) || (this.log && value <= 0)) return;
        const x = this.x[i], y = place(this.up.at(value));
        if (this.window && x > this.window[1]) return;
        const inside = place(this.across.at(x));
        path += path === "" ? `M${inside} ${y}` : before !== null ? `H${inside}V${y}` : "";
        before = y;
        last = i;
      });
      if (path === "") return null;
      if (this.window && last + 1 < this.x.length) path += `H${RIGHT}`;
      element(this.svg, "path", { d: path, class: `line ${line.style}` });
      const y = place(this.up.at(line.values[last])), x = place(this.across.at(this.x[last]));
      element(this.svg, "circle", { cx: x, cy: y, r: 3.2 + 1.8 * behind, class: line.style });
      return element(this.svg, "circle", { r: 4.5, class: `dot ${line.style}`, visibility: "hidden" });
    }

    point(i) {
      const x = i === null || i === undefined ? null : this.x[i];
      const seen = x !== null && x >= this.across.low && x <= this.across.high;
      const position = seen ? place(this.across.at(x)) : 0;
      this.cross.setAttribute("visibility", seen ? "visible" : "hidden");
      this.cross.setAttribute("x1", position);
      this.cross.setAttribute("x2", position);
      this.dots.forEach((dot, k) => {
        if (!dot) return;
        const value = x === null ? null : this.panel.lines[k].values[i];
        const shown = seen && known(value) && (value > 0 || !this.log);
        dot.setAttribute("visibility", shown ? "visible" : "hidden");
        if (shown) {
          dot.setAttribute("cx", position);
          dot.setAttribute("cy", place(this.up.at(value)));
        }
      });
      if (x === null) return;
      this.svg.setAttribute("aria-valuenow", String(i + 1));
      this.svg.setAttribute("aria-valuetext", this.curves.notes[i]);
    }

    shade(a, b) {
      const [left, right] = a === undefined ? [0, 0] : [Math.min(a, b), Math.max(a, b)];
      this.shaded.setAttribute("x", Math.max(left, LEFT));
      this.shaded.setAttribute("width", Math.max(0, Math.min(right, RIGHT) - Math.max(left, LEFT)));
    }
  }

  class Curves {
    constructor(box) {
      const data = JSON.parse(box.dataset.curves);
      this.notes = data.notes;
      this.chosen = null;
      const output = box.ownerDocument.createElement("output");
      output.className = "readout";
      this.rest = "Point, touch or use the arrow keys for values; drag, or press + and −, to zoom in.";
      this.output = output;
      this.charts = [];
      box.querySelectorAll(".charts").forEach((charts, a) => {
        charts.querySelectorAll("figure").forEach((figure, p) => {
          this.charts.push(new Chart(figure, data.panels[p], data.along[a], this));
        });
      });
      box.append(output);
      box.classList.add("live");
      this.point(null);
    }

    point(i) {
      this.chosen = i;
      this.output.textContent = i === null ? this.rest : this.notes[i];
      for (const chart of this.charts) chart.point(i);
    }
  }

  document.querySelectorAll("[data-curves]").forEach((box) => new Curves(box));
})();
