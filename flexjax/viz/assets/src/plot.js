// Curves over time below the scene. The line at the current time follows a pointer, and the arm follows the line.
import { $, data, floats, place, shown, theme, view } from "./common.js";

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];
const MARGIN = { left: 62, right: 24, top: 8, bottom: 22 };

export class Plot {
  constructor(begin, end, seek) {
    Object.assign(this, { begin, end, canvas: $("plot") });
    this.runs = data.arms.map((arm) => {
      const times = floats(arm.curves.times), values = floats(arm.curves.values), n = times.length;
      return { arm, times, channels: arm.curves.channels.map((c, k) => ({ ...c, values: values.subarray(k * n, (k + 1) * n) })) };
    });
    const channels = this.runs[0].channels;
    this.groups = [...new Set(channels.map((c) => c.group))];
    for (const group of this.groups) $("group").append(new Option(group, group));
    this.on = new Map(this.groups.map((g) => [g, new Set(channels.filter((c) => c.group === g).slice(0, 6).map((c) => c.name))]));
    this.group = this.groups[0];
    $("group").value = this.group;
    let held = false;
    const at = (e) => {
      const box = this.canvas.getBoundingClientRect();
      const x = (e.clientX - box.left - MARGIN.left) / Math.max(box.width - MARGIN.left - MARGIN.right, 1);
      seek(begin + Math.min(Math.max(x, 0), 1) * (end - begin));
    };
    this.canvas.onpointerdown = (e) => { held = true; this.canvas.setPointerCapture(e.pointerId); at(e); };
    this.canvas.onpointermove = (e) => { if (held) at(e); };
    this.canvas.onpointerup = this.canvas.onpointercancel = () => { held = false; };
    this.legend();
  }

  choose(group) {
    this.group = group;
    $("curves").hidden = group === "";
    this.legend();
    this.draw();
  }

  // The curves that are drawn: with several runs, their colour tells the run and their dashes the channel.
  chosen() {
    const several = this.runs.length > 1, found = [];
    this.runs.forEach((run) => {
      run.channels.filter((c) => c.group === this.group).forEach((c, k) => {
        const colour = several ? run.arm.colour : COLOURS[k % COLOURS.length];
        if (this.on.get(this.group).has(c.name)) found.push({ ...c, times: run.times, colour: shown(colour), dash: DASHES[(several ? k : Math.floor(k / COLOURS.length)) % DASHES.length] });
      });
    });
    return found;
  }

  legend() {
    const box = $("channels");
    box.replaceChildren();
    if (!this.group) return;
    const several = this.runs.length > 1;
    this.runs[0].channels.filter((c) => c.group === this.group).forEach((c, k) => {
      const button = document.createElement("button");
      const on = this.on.get(this.group);
      button.type = "button";
      button.className = "chip";
      button.setAttribute("aria-pressed", on.has(c.name));
      const colour = several ? theme.dim : COLOURS[k % COLOURS.length];
      const dash = DASHES[(several ? k : Math.floor(k / COLOURS.length)) % DASHES.length].join(" ");
      button.innerHTML = `<svg width="20" height="8"><line x1="0" y1="4" x2="20" y2="4" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/></svg>`;
      button.append(c.name);
      button.onclick = () => {
        if (on.has(c.name)) on.delete(c.name); else on.add(c.name);
        this.legend();
        this.draw();
      };
      box.append(button);
    });
  }

  draw() {
    if (!this.group) return;
    const box = this.canvas.getBoundingClientRect(), ratio = Math.min(window.devicePixelRatio, 2);
    if (box.width < 40 || box.height < 40) return;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint(pen, box.width, box.height);
  }

  paint(pen, width, height) {
    const curves = this.chosen();
    const w = width - MARGIN.left - MARGIN.right, h = height - MARGIN.top - MARGIN.bottom;
    let low = Infinity, high = -Infinity;
    for (const { values } of curves) for (const v of values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    if (!(low <= high)) [low, high] = [0, 1];
    const largest = Math.max(Math.abs(low), Math.abs(high)), flat = high - low < 1e-5 * largest || largest < 1e-12;
    const pad = flat ? 0.1 * largest || 1 : 0.06 * (high - low);
    low -= pad;
    high += pad;
    const x = (t) => MARGIN.left + ((t - this.begin) / (this.end - this.begin || 1)) * w;
    const y = (v) => MARGIN.top + h - ((v - low) / (high - low)) * h;
    pen.fillStyle = theme.back;
    pen.fillRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.fillStyle = theme.dim;
    pen.strokeStyle = theme.line;
    const grid = (values, line, label) => values.forEach((v) => { pen.beginPath(); line(v); pen.stroke(); label(v); });
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const levels = ticks(low, high, Math.max(2, Math.round(h / 20)));
    grid(levels, (v) => { pen.moveTo(MARGIN.left, y(v)); pen.lineTo(MARGIN.left + w, y(v)); }, (v) => pen.fillText(short(v, levels), MARGIN.left - 6, y(v)));
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const moments = ticks(this.begin, this.end, Math.max(2, Math.floor(w / 70)));
    grid(moments, (t) => { pen.moveTo(x(t), MARGIN.top); pen.lineTo(x(t), MARGIN.top + h); }, (t) => pen.fillText(`${short(t, moments)} s`, x(t), MARGIN.top + h + 5));
    pen.save();
    pen.translate(8, MARGIN.top + h / 2);
    pen.rotate(-Math.PI / 2);
    pen.textBaseline = "middle";
    pen.fillText([...new Set(curves.map((c) => c.unit))].join(", "), 0, 0);
    pen.restore();
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN.left, MARGIN.top, w, h);
    pen.clip();
    pen.lineWidth = 1.6;
    pen.lineJoin = "round";
    for (const { times, values, colour, dash } of curves) {
      pen.strokeStyle = colour;
      pen.setLineDash(dash);
      pen.beginPath();
      let broken = true;
      for (let k = 0; k < times.length; k++) {
        if (!Number.isFinite(values[k])) { broken = true; continue; }
        if (broken) pen.moveTo(x(times[k]), y(values[k])); else pen.lineTo(x(times[k]), y(values[k]));
        broken = false;
      }
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.restore();
    pen.strokeStyle = theme.text;
    pen.beginPath();
    pen.moveTo(x(view.time), MARGIN.top);
    pen.lineTo(x(view.time), MARGIN.top + h);
    pen.stroke();
    for (const { times, values, colour } of curves) {
      const [k, f] = place(times, view.time);
      const v = values[k] + f * (values[Math.min(k + 1, times.length - 1)] - values[k]);
      if (!Number.isFinite(v)) continue;
      pen.fillStyle = colour;
      pen.beginPath();
      pen.arc(x(view.time), y(v), 3.2, 0, 2 * Math.PI);
      pen.fill();
    }
  }
}

// Round numbers within a range.
export function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

function short(v, all) {
  const step = all.length > 1 ? all[1] - all[0] : Math.abs(v) || 1;
  const largest = Math.max(...all.map(Math.abs));
  if (largest >= 1e5 || (largest > 0 && largest < 1e-3)) return (v || 0).toExponential(1);
  return (Math.abs(v) < 1e-9 * step ? 0 : v).toFixed(Math.min(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)), 6));
}
