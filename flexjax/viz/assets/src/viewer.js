// The 3D page: draws the scene that flexjax/viz/scene/_scene.py writes. Built into ../viewer.min.js (see CONTRIBUTING.md).
import { AmbientLight, Color, DirectionalLight, PerspectiveCamera, Scene, Vector3, WebGLRenderer } from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { Arm, paint } from "./arm.js";
import { Camera } from "./capture.js";
import { $, BEHIND, FRONT, RIGHT, UP, data, setTheme, shown, theme, view } from "./common.js";
import { Plot, ticks } from "./plot.js";

let renderer;
try {
  renderer = new WebGLRenderer({ antialias: true, canvas: $("canvas") });
} catch (error) {
  $("message").textContent = "This page needs WebGL, which this browser does not offer.";
  throw error;
}
renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
const scene = new Scene();
scene.background = new Color();
scene.add(new AmbientLight(0xffffff, 1.5));
const sun = new DirectionalLight(0xffffff, 2.3);
sun.position.copy(RIGHT).addScaledVector(UP, 2).addScaledVector(FRONT, 3);
scene.add(sun);
const arms = data.arms.map((spec) => new Arm(spec, scene));
const begin = Math.min(...data.arms.map((a) => a.times[0])), end = Math.max(...data.arms.map((a) => a.times[a.times.length - 1]));
view.time = begin;
const largest = Math.max(1e-12, ...arms.map((arm) => arm.strain.reduce((a, b) => Math.max(a, b), 0)));
const largestLoad = [0, 3].map((from) => {
  let most = 0;
  for (const arm of arms) for (const { wrench } of arm.loads) for (let o = from; o < wrench.length; o += 6) most = Math.max(most, Math.hypot(wrench[o], wrench[o + 1], wrench[o + 2]));
  return most;
});

// The room of the whole motion, along the directions of the picture, and points that the camera must show.
const axes = [RIGHT, UP, FRONT], point = new Vector3(), points = [];
const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
for (const arm of arms) {
  const found = [...arm.points()], stride = Math.max(1, Math.ceil((found.length * arms.length) / 1500));
  found.forEach((p, i) => {
    point.set(...p);
    axes.forEach((axis, k) => { const x = point.dot(axis); low[k] = Math.min(low[k], x); high[k] = Math.max(high[k], x); });
    if (i % stride === 0) points.push(point.clone());
  });
}
const mix = (r, u, f) => new Vector3().addScaledVector(RIGHT, r).addScaledVector(UP, u).addScaledVector(FRONT, f);
const middle = [0, 1, 2].map((k) => (low[k] + high[k]) / 2), extent = [0, 1, 2].map((k) => high[k] - low[k]);
const gap = 0.085 * data.reach; // between the lowest point and the floor: bases stand on it
const room = [Math.max(extent[0], 0.3 * data.reach), Math.max(extent[1], 0.12 * data.reach), Math.max(extent[2], 0.3 * data.reach)];

// Side by side: a grid of cells, each as large as the room that any of the runs needs.
const cell = { x: room[0] + 0.3 * data.reach, y: room[1] + 0.32 * data.reach };
const flat = data.planar;
let columns = arms.length;
const step = (() => { const found = ticks(0, data.reach, 8); return found[1] - found[0]; })();
for (const arm of arms) {
  if (BEHIND) arm.makeFloor(mix(middle[0], middle[1], low[2] - gap), RIGHT, UP, room[0] + 0.2 * data.reach, room[1] + 0.2 * data.reach, step);
  else arm.makeFloor(mix(middle[0], low[1] - gap, middle[2]), RIGHT, FRONT, room[0] + 0.2 * data.reach, room[2] + (flat ? 0.1 : 0.2) * data.reach, step);
}
$("grid").textContent = `grid ${Number(step.toPrecision(6))} m`;

const camera = new PerspectiveCamera(35, 1, 0.01 * data.reach, 200 * data.reach);
camera.up.copy(UP);
const controls = new OrbitControls(camera, renderer.domElement);
let free = false; // whether the user has moved the camera
controls.addEventListener("start", () => { free = true; });
controls.addEventListener("change", () => render());

// What the camera shows: the motion of every arm in its cell, with some floor below it.
function visible() {
  const found = [], floor = [];
  if (!BEHIND) for (const r of [low[0], high[0]]) for (const f of [middle[2] - 0.25 * room[2], middle[2] + 0.25 * room[2]]) floor.push(mix(r, low[1] - gap, f));
  const name = arms.length > 1 && view.beside ? 0.06 * data.reach : 0;
  for (let i = 0; i < (view.beside ? arms.length : 1); i++) {
    const shift = offset(i);
    for (const p of [...points, ...floor]) found.push(p.clone().add(shift));
    if (name) found.push(mix(middle[0], low[1] - (BEHIND ? 0 : gap) - name, high[2]).add(shift));
  }
  return found;
}

const offset = (i) => (view.beside ? mix((i % columns) * cell.x, -Math.floor(i / columns) * cell.y, 0) : new Vector3());

// The camera looks at the middle from a direction, as near as the whole motion fits.
function fit(aspect) {
  const all = visible();
  const centre = new Vector3();
  const direction = (BEHIND ? mix(0, -0.1, 1) : flat ? mix(0.12, 0.2, 1) : mix(0.6, 0.45, 1)).normalize();
  const right = new Vector3().crossVectors(UP, direction).normalize(), above = new Vector3().crossVectors(direction, right);
  const tangent = Math.tan((camera.fov * Math.PI) / 360);
  const measure = (axis) => { const x = all.map((c) => c.dot(axis)); return [Math.min(...x), Math.max(...x)]; };
  for (const axis of [right, above, direction]) { const [a, b] = measure(axis); centre.addScaledVector(axis, (a + b) / 2 - centre.dot(axis)); }
  const round = 0.03 * data.reach; // payloads and joints are wider than the axes of the links
  let far = 0;
  for (const c of all) {
    point.copy(c).sub(centre);
    far = Math.max(far, point.dot(direction) + Math.max((Math.abs(point.dot(above)) + round) / tangent, (Math.abs(point.dot(right)) + round) / (tangent * aspect)));
  }
  return { centre, direction, far: 1.06 * far };
}

function home() {
  free = false;
  const { centre, direction, far } = fit(camera.aspect);
  camera.position.copy(centre).addScaledVector(direction, far);
  controls.target.copy(centre);
  controls.update();
}

// Arms in space stand in a row; planar ones take as many columns as show them largest.
function layout() {
  columns = arms.length;
  if (view.beside && flat) {
    let best = Infinity, chosen = columns;
    for (columns = 1; columns <= arms.length; columns++) {
      const { far } = fit(camera.aspect);
      if (far < 0.999 * best) { best = far; chosen = columns; }
    }
    columns = Math.ceil(arms.length / Math.ceil(arms.length / chosen)); // rows of equal length
  }
  arms.forEach((arm, i) => {
    arm.group.position.copy(offset(i));
    arm.floor.visible = view.beside || i === 0;
  });
}

const labels = arms.length < 2 ? [] : arms.map((arm) => {
  const label = document.createElement("div");
  label.className = "label";
  label.textContent = arm.spec.name;
  $("stage").append(label);
  return label;
});

const plot = new Plot(begin, end, (time) => { play(false); view.time = time; draw(); });
const shutter = new Camera(renderer.domElement, labels, plot);

function render() {
  renderer.render(scene, camera);
  const box = $("stage").getBoundingClientRect();
  labels.forEach((label, i) => {
    label.hidden = !view.beside;
    point.copy(mix(middle[0], low[1] - (BEHIND ? 0.03 * data.reach : gap + 0.02 * data.reach), high[2])).add(arms[i].group.position).project(camera);
    label.style.left = `${((point.x + 1) / 2) * box.width}px`;
    label.style.top = `${((1 - point.y) / 2) * box.height}px`;
  });
}

function draw() {
  for (const arm of arms) arm.draw(largest, largestLoad);
  $("time").value = view.time;
  $("clock").textContent = `${view.time.toFixed(3)} s`;
  render();
  plot.draw();
  shutter.frame();
}

function resize() {
  const box = $("stage").getBoundingClientRect();
  renderer.setSize(box.width, box.height, false);
  camera.aspect = box.width / Math.max(box.height, 1);
  camera.updateProjectionMatrix();
  if (!free) { layout(); home(); }
  render();
  plot.draw();
}

let last = null;
function tick(now) {
  if (!view.playing) return;
  if (last !== null) view.time += ((now - last) / 1000) * view.speed;
  last = now;
  if (view.time > end) {
    if (shutter.recorder || !view.loop) {
      view.time = end;
      draw();
      shutter.stop();
      play(false);
      return;
    }
    view.time = begin;
  }
  draw();
  requestAnimationFrame(tick);
}

function play(on) {
  if (on && view.time >= end) view.time = begin;
  if (!on) shutter.stop();
  view.playing = on;
  last = null;
  $("play").textContent = on ? "Pause" : "Play";
  $("play").setAttribute("aria-label", on ? "pause" : "play");
  if (on) requestAnimationFrame(tick);
}

function seek(time) {
  play(false);
  view.time = Math.min(Math.max(time, begin), end);
  draw();
}

function picture() {
  draw();
  shutter.picture();
}

function video() {
  if (shutter.recorder) { play(false); return; }
  seek(begin);
  try {
    shutter.record(() => { $("video").textContent = "Video"; });
  } catch (error) {
    $("message").textContent = error.message;
    setTimeout(() => { $("message").textContent = ""; }, 6000);
    return;
  }
  $("video").textContent = "Stop";
  play(true);
}

function repaint(dark) {
  setTheme(dark);
  scene.background.set(theme.back);
  paint();
  for (const arm of arms) arm.recolour();
  document.querySelectorAll("#legend i").forEach((dot, k) => { dot.style.background = shown(arms[k].spec.colour); });
  $("theme").textContent = dark ? "Light" : "Dark";
  plot.legend();
  draw();
}

$("title").textContent = data.robot;
$("time").min = begin;
$("time").max = end;
$("time").step = (end - begin) / 1000 || 1;
for (const arm of arms) {
  const item = document.createElement("span");
  item.append(document.createElement("i"), arm.spec.name);
  $("legend").append(item);
}
$("largest").textContent = `0 to ${largest.toExponential(1)}`;
$("besideBox").hidden = arms.length < 2;
$("beside").checked = view.beside;
$("loadsBox").hidden = !arms.some((arm) => arm.loads.length);
// A run is shown in no less than two seconds at first, however short it is.
const speeds = [...$("speed").options].map((o) => Number(o.value));
view.speed = Math.max(speeds[0], ...speeds.filter((x) => x <= 1 && (end - begin) / x >= 2));
$("speed").value = view.speed;
$("play").onclick = () => play(!view.playing);
$("time").oninput = (e) => seek(Number(e.target.value));
// Slider 0 to 100: none at the left, as computed at 20, a hundred times at the right.
$("scale").oninput = (e) => {
  const x = Number(e.target.value);
  view.scale = x <= 20 ? x / 20 : Math.pow(100, (x - 20) / 80);
  $("scaleText").textContent = `${view.scale < 10 ? view.scale.toFixed(1) : view.scale.toFixed(0)}x`;
  draw();
};
for (const id of ["ghost", "strain", "trace", "loads"]) {
  $(id).onchange = (e) => { view[id] = e.target.checked; $("ramp").hidden = !view.strain; draw(); };
}
$("loop").onchange = (e) => { view.loop = e.target.checked; };
$("beside").onchange = (e) => { view.beside = e.target.checked; layout(); home(); draw(); };
$("speed").onchange = (e) => { view.speed = Number(e.target.value); };
$("group").onchange = (e) => { plot.choose(e.target.value); resize(); };
$("home").onclick = () => { layout(); home(); render(); };
$("picture").onclick = picture;
$("video").onclick = video;
$("theme").onclick = () => repaint(!theme.dark);
$("keys").onclick = () => $("help").showModal();

const faster = (by) => {
  const k = Math.min(Math.max(speeds.indexOf(view.speed) + by, 0), speeds.length - 1);
  view.speed = speeds[k];
  $("speed").value = view.speed;
};
const KEYS = {
  " ": () => play(!view.playing),
  ArrowLeft: (e) => seek(view.time - ((end - begin) * (e.shiftKey ? 10 : 1)) / 100),
  ArrowRight: (e) => seek(view.time + ((end - begin) * (e.shiftKey ? 10 : 1)) / 100),
  Home: () => seek(begin),
  End: () => seek(end),
  ArrowUp: () => faster(1),
  ArrowDown: () => faster(-1),
  g: () => $("ghost").click(),
  s: () => $("strain").click(),
  t: () => $("trace").click(),
  l: () => $("loop").click(),
  d: () => $("theme").click(),
  r: () => $("home").click(),
  p: picture,
  v: video,
  "?": () => $("help").showModal(),
};
window.addEventListener("keydown", (e) => {
  const act = KEYS[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (!act || e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
  // A focused control keeps the keys that it understands.
  const { tagName, type } = e.target;
  if (tagName === "SELECT" || (type === "range" && e.key.length > 1) || (e.key === " " && (tagName === "BUTTON" || type === "checkbox"))) return;
  e.preventDefault();
  act(e);
});
const prefers = window.matchMedia("(prefers-color-scheme: dark)");
prefers.addEventListener("change", (e) => repaint(e.matches));
// Where little room is left, the scene takes all of it at first.
if (window.innerHeight < 430) { $("group").value = ""; plot.choose(""); }
repaint(prefers.matches);
new ResizeObserver(resize).observe($("stage"));
resize();
layout();
home();
draw();
// For tests and for who wants to drive the page from elsewhere.
window.flexjax = {
  view, draw, play, seek, theme, plot, arms, camera, columns: () => columns,
  tip: (k = 0) => arms[k].pose[arms[k].L - 1].p[arms[k].S - 1].toArray(),
  // Where a point of an arm is in the picture: within -1 .. 1 if it is visible.
  seen: (k, p) => new Vector3(...p).add(arms[k].group.position).project(camera).toArray(),
};
