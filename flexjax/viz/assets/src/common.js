// The data of the page, the state of the view, and colours of both themes.
import { Color, Vector3 } from "three";

export const data = JSON.parse(document.getElementById("scene").textContent);
export const $ = (id) => document.getElementById(id);
export const view = {
  time: 0, scale: 1, ghost: false, strain: false, beside: data.arms.length > 1, playing: false, speed: 1, trace: true, loads: true, loop: true,
};

export function floats(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

// Index of the sample before a time, and the fraction to the next one.
export function place(times, time) {
  if (!(time > times[0])) return [0, 0];
  let low = 0, high = times.length - 1;
  if (time >= times[high]) return [high, 0];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle; else high = middle;
  }
  return [low, (time - times[low]) / (times[high] - times[low])];
}

// Directions of the picture: up, to the right, and to the viewer.
export const UP = new Vector3(...data.up);
export const FRONT = new Vector3(0, 0, 1);
if (Math.abs(UP.z) > 0.9) FRONT.set(0, -1, 0);
FRONT.addScaledVector(UP, -FRONT.dot(UP)).normalize();
export const RIGHT = new Vector3().crossVectors(UP, FRONT);
export const FLOOR = new Vector3(...data.floor);
export const BEHIND = FLOOR.dot(UP) < 0.5; // the floor lies behind an arm that is seen from above

// Viridis, eight stops: ordered in lightness, so that it reads without colour too.
const RAMP = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"].map((c) => new Color(c));
export function ramp(x, out) {
  const y = Math.min(Math.max(x, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(y), RAMP.length - 2);
  return out.copy(RAMP[i]).lerp(RAMP[i + 1], y - i);
}

const THEMES = {
  light: { back: "#ffffff", text: "#222222", dim: "#666666", line: "#d9dce1", axis: "#9aa0a8", shadow: "#dfe2e6", joint: "#4a4f57", load: "#2b2e33", base: "#7d848e" },
  dark: { back: "#15181d", text: "#e6e8eb", dim: "#a3a9b2", line: "#2c3138", axis: "#535b66", shadow: "#090b0d", joint: "#aab1bb", load: "#d5d9de", base: "#6d7580" },
};
export const theme = { dark: false, ...THEMES.light };
export function setTheme(dark) {
  Object.assign(theme, { dark }, THEMES[dark ? "dark" : "light"]);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
// Black, the seventh colour of the runs, is invisible on a dark page.
export const shown = (colour) => (theme.dark && colour.toLowerCase() === "#000000" ? "#ffffff" : colour);
