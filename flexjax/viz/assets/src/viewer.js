// The 3D page: draws the scene that flexjax/viz/_scene.py writes. Built into ../viewer.min.js (see CONTRIBUTING.md).
import {
  AmbientLight, BufferAttribute, BufferGeometry, Color, DirectionalLight, DoubleSide, Group, GridHelper, Line, LineBasicMaterial,
  LineDashedMaterial, Mesh, MeshStandardMaterial, PerspectiveCamera, Quaternion, Scene, SphereGeometry, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

const data = JSON.parse(document.getElementById("scene").textContent);
const $ = (id) => document.getElementById(id);

function floats(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

// Viridis, eight stops: ordered in lightness, so that it reads without colour too.
const RAMP = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"].map((c) => new Color(c));
function ramp(x, out) {
  const y = Math.min(Math.max(x, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(y), RAMP.length - 2);
  return out.copy(RAMP[i]).lerp(RAMP[i + 1], y - i);
}

const SIDES = { false: [[1, 1], [-1, 1], [-1, -1], [1, -1]], true: [...Array(12).keys()].map((k) => [Math.cos((k * Math.PI) / 6), Math.sin((k * Math.PI) / 6)]) };
const view = { time: 0, scale: 1, ghost: false, strain: false, beside: data.arms.length > 1, playing: false, speed: 1, trace: true };

class Arm {
  constructor(spec, index, scene) {
    Object.assign(this, { spec, index });
    [this.T, this.L, this.S] = spec.shape;
    this.frames = floats(spec.frames);
    this.deflection = floats(spec.deflection);
    this.strain = floats(spec.strain);
    this.colour = new Color(spec.colour);
    this.group = new Group();
    scene.add(this.group);
    this.links = data.links.map((link) => this.#makeLink(link));
    const trace = new BufferGeometry();
    this.tracePoints = new Float32Array(3 * this.T);
    trace.setAttribute("position", new BufferAttribute(this.tracePoints, 3));
    this.trace = new Line(trace, new LineBasicMaterial({ color: this.colour, transparent: true, opacity: 0.5 }));
    this.trace.frustumCulled = false;
    this.group.add(this.trace);
    this.pose = data.links.map(() => ({ p: Array.from({ length: this.S }, () => new Vector3()), r: Array.from({ length: this.S }, () => new Quaternion()) }));
  }

  #makeLink(link) {
    const sides = SIDES[link.round];
    const n = sides.length;
    const geometry = new BufferGeometry();
    const count = this.S * n;
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3));
    geometry.setAttribute("color", new BufferAttribute(new Float32Array(3 * count), 3));
    const faces = [];
    for (let s = 0; s + 1 < this.S; s++) {
      for (let k = 0; k < n; k++) {
        const a = s * n + k, b = s * n + ((k + 1) % n), c = a + n, d = b + n;
        faces.push(a, b, c, b, d, c);
      }
    }
    for (const s of [0, this.S - 1]) for (let k = 1; k + 1 < n; k++) faces.push(s * n, s * n + k, s * n + k + 1);
    geometry.setIndex(faces);
    const mesh = new Mesh(geometry, new MeshStandardMaterial({ vertexColors: true, side: DoubleSide, flatShading: true, roughness: 0.6, metalness: 0.1 }));
    mesh.frustumCulled = false;
    const joint = new Mesh(new SphereGeometry(0.011 * data.reach, 16, 12), new MeshStandardMaterial({ color: 0x444444 }));
    const line = new BufferGeometry();
    line.setAttribute("position", new BufferAttribute(new Float32Array(6), 3));
    const ghost = new Line(line, new LineDashedMaterial({ color: 0x888888, dashSize: 0.02 * data.reach, gapSize: 0.012 * data.reach }));
    ghost.frustumCulled = false;
    this.group.add(mesh, joint, ghost);
    let load = null;
    if (link.payload) {
      load = new Mesh(new SphereGeometry(0.018 * data.reach, 20, 14), new MeshStandardMaterial({ color: 0x222222 }));
      this.group.add(load);
    }
    return { link, mesh, joint, ghost, load, sides };
  }

  // Place in the samples: index of the one before the time, and the fraction to the next.
  at(time) {
    const times = this.spec.times;
    if (time <= times[0]) return [0, 0];
    let low = 0, high = times.length - 1;
    if (time >= times[high]) return [high, 0];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle; else high = middle;
    }
    return [low, (time - times[low]) / (times[high] - times[low])];
  }

  #read(i, link, s, p, q, d) {
    const o = ((i * this.L + link) * this.S + s) * 7, e = ((i * this.L + link) * this.S + s) * 3;
    p.set(this.frames[o], this.frames[o + 1], this.frames[o + 2]);
    q.set(this.frames[o + 4], this.frames[o + 5], this.frames[o + 6], this.frames[o + 3]);
    d.set(this.deflection[e], this.deflection[e + 1], this.deflection[e + 2]);
  }

  // World poses of all stations with the deformation of every link scaled; scale 0 is the rigid arm at the same joint coordinates.
  shape(time, scale, out) {
    const [i, f] = this.at(time);
    const j = Math.min(i + 1, this.T - 1);
    const p1 = new Vector3(), d1 = new Vector3(), q1 = new Quaternion();
    const actual = this.actual ??= data.links.map(() => Array.from({ length: this.S }, () => ({ p: new Vector3(), q: new Quaternion(), d: new Vector3() })));
    for (let l = 0; l < this.L; l++) {
      for (let s = 0; s < this.S; s++) {
        const a = actual[l][s];
        this.#read(i, l, s, a.p, a.q, a.d);
        if (f > 0) {
          this.#read(j, l, s, p1, q1, d1);
          a.p.lerp(p1, f);
          a.q.slerp(q1, f);
          a.d.lerp(d1, f);
        }
      }
    }
    if (scale === 1) {
      for (let l = 0; l < this.L; l++) for (let s = 0; s < this.S; s++) { out[l].p[s].copy(actual[l][s].p); out[l].r[s].copy(actual[l][s].q); }
      return out;
    }
    const done = new Array(this.L).fill(false);
    const place = (l) => {
      if (done[l]) return;
      done[l] = true;
      const { parent, slides } = data.links[l];
      const base = actual[l][0];
      const inverse = base.q.clone().invert();
      let bp = base.p.clone(), bq = base.q.clone();
      if (parent >= 0) {
        place(parent);
        const k = slides ? this.#nearest(actual[parent], base.p) : this.S - 1;
        const seat = actual[parent][k];
        const back = seat.q.clone().invert();
        bp = base.p.clone().sub(seat.p).applyQuaternion(back).applyQuaternion(out[parent].r[k]).add(out[parent].p[k]);
        bq = out[parent].r[k].clone().multiply(back).multiply(base.q);
      }
      for (let s = 0; s < this.S; s++) {
        const a = actual[l][s];
        const local = a.p.clone().sub(base.p).applyQuaternion(inverse).addScaledVector(a.d, scale - 1);
        out[l].p[s].copy(local.applyQuaternion(bq).add(bp));
        out[l].r[s].copy(bq).multiply(turn(inverse.clone().multiply(a.q), scale));
      }
    };
    for (let l = 0; l < this.L; l++) place(l);
    return out;
  }

  #nearest(stations, point) {
    let best = 0;
    stations.forEach((a, k) => { if (a.p.distanceTo(point) < stations[best].p.distanceTo(point)) best = k; });
    return best;
  }

  draw(largest) {
    const pose = this.shape(view.time, view.scale, this.pose);
    const [i] = this.at(view.time);
    const colour = new Color(), y = new Vector3(), z = new Vector3();
    this.links.forEach((part, l) => {
      const position = part.mesh.geometry.attributes.position, colours = part.mesh.geometry.attributes.color;
      const n = part.sides.length;
      for (let s = 0; s < this.S; s++) {
        const half = part.link.half[s];
        const { p, r } = { p: pose[l].p[s], r: pose[l].r[s] };
        y.set(0, half[0], 0).applyQuaternion(r);
        z.set(0, 0, half[1]).applyQuaternion(r);
        if (view.strain) ramp(this.strain[(i * this.L + l) * this.S + s] / largest, colour); else colour.copy(this.colour);
        for (let k = 0; k < n; k++) {
          const [a, b] = part.sides[k];
          position.setXYZ(s * n + k, p.x + a * y.x + b * z.x, p.y + a * y.y + b * z.y, p.z + a * y.z + b * z.z);
          colours.setXYZ(s * n + k, colour.r, colour.g, colour.b);
        }
      }
      position.needsUpdate = colours.needsUpdate = true;
      part.joint.position.copy(pose[l].p[0]);
      part.load?.position.copy(pose[l].p[this.S - 1]);
    });
    if (view.ghost) {
      const rigid = this.ghostPose ??= data.links.map(() => ({ p: Array.from({ length: this.S }, () => new Vector3()), r: Array.from({ length: this.S }, () => new Quaternion()) }));
      this.shape(view.time, 0, rigid);
      this.links.forEach((part, l) => {
        const line = part.ghost.geometry.attributes.position;
        line.setXYZ(0, ...rigid[l].p[0]);
        line.setXYZ(1, ...rigid[l].p[this.S - 1]);
        line.needsUpdate = true;
        part.ghost.computeLineDistances();
      });
    }
    for (const part of this.links) part.ghost.visible = view.ghost;
    this.trace.visible = view.trace && view.scale === 1;
    for (let t = 0; t <= i; t++) {
      const o = ((t * this.L + this.L - 1) * this.S + this.S - 1) * 7;
      this.tracePoints.set(this.frames.subarray(o, o + 3), 3 * t);
    }
    this.trace.geometry.setDrawRange(0, i + 1);
    this.trace.geometry.attributes.position.needsUpdate = true;
  }
}

// A rotation applied `scale` times.
function turn(q, scale) {
  if (q.w < 0) q.set(-q.x, -q.y, -q.z, -q.w);
  const sine = Math.hypot(q.x, q.y, q.z);
  if (sine < 1e-9) return q.identity();
  const half = Math.atan2(sine, q.w) * scale;
  const k = Math.sin(half) / sine;
  return q.set(q.x * k, q.y * k, q.z * k, Math.cos(half));
}

let renderer;
try {
  renderer = new WebGLRenderer({ antialias: true, canvas: $("canvas") });
} catch (error) {
  $("message").textContent = "This page needs WebGL, which this browser does not offer.";
  throw error;
}
renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
const scene = new Scene();
scene.background = new Color(0xffffff);
scene.add(new AmbientLight(0xffffff, 1.6));
const light = new DirectionalLight(0xffffff, 2.2);
light.position.set(1, 2, 3);
scene.add(light);
const arms = data.arms.map((spec, i) => new Arm(spec, i, scene));
const largest = Math.max(1e-12, ...arms.map((arm) => arm.strain.reduce((a, b) => Math.max(a, b), 0)));
const begin = Math.min(...data.arms.map((a) => a.times[0])), end = Math.max(...data.arms.map((a) => a.times[a.times.length - 1]));
view.time = begin;

const low = new Vector3(Infinity, Infinity, Infinity), high = new Vector3(-Infinity, -Infinity, -Infinity), point = new Vector3();
for (const arm of arms) for (let o = 0; o < arm.frames.length; o += 7) { point.set(arm.frames[o], arm.frames[o + 1], arm.frames[o + 2]); low.min(point); high.max(point); }
// Side by side: a grid of cells, each as large as the room that any of the runs needs.
const cell = { x: Math.max(high.x - low.x, 0.3 * data.reach) + 0.12 * data.reach, y: Math.max(high.y - low.y, 0.12 * data.reach) + 0.2 * data.reach };
let columns = arms.length;
let floor = null;
if (!data.planar) {
  floor = new GridHelper(4 * data.reach, 20, 0xbbbbbb, 0xe4e4e4);
  floor.position.y = low.y - 0.05 * data.reach;
  scene.add(floor);
}
const camera = new PerspectiveCamera(35, 1, 0.01 * data.reach, 100 * data.reach);
const controls = new OrbitControls(camera, renderer.domElement);
controls.addEventListener("change", () => render());

function rows() {
  return view.beside ? Math.ceil(arms.length / columns) : 1;
}

function size() {
  const across = view.beside ? columns : 1;
  return [high.x - low.x + cell.x * (across - 1), Math.max(high.y - low.y, 0.2 * data.reach) + cell.y * (rows() - 1) + (view.beside ? 0.1 * data.reach : 0)];
}

// How far away the camera must be to see everything.
function distance() {
  const tangent = Math.tan((camera.fov * Math.PI) / 360);
  const [width, height] = size();
  return 1.15 * Math.max(height / 2 / tangent, width / 2 / tangent / camera.aspect) + (high.z - low.z);
}

function home() {
  const across = view.beside ? columns : 1;
  const centre = new Vector3((low.x + high.x + cell.x * (across - 1)) / 2, (low.y + high.y - cell.y * (rows() - 1)) / 2, (low.z + high.z) / 2);
  const direction = data.planar ? new Vector3(0, 0.12, 1) : new Vector3(0.6, 0.45, 1);
  camera.position.copy(centre).addScaledVector(direction.normalize(), distance());
  controls.target.copy(centre);
  controls.update();
}

// Arms in space stand on one floor, so they stay in a row; planar ones take as many columns as show them largest.
function layout() {
  if (view.beside && data.planar) {
    let best = Infinity;
    for (let n = 1, chosen = columns; n <= arms.length; n++) {
      columns = n;
      const far = distance();
      if (far < 0.999 * best) { best = far; chosen = n; }
      if (n === arms.length) columns = chosen;
    }
  }
  arms.forEach((arm, i) => arm.group.position.set(view.beside ? (i % columns) * cell.x : 0, view.beside ? -Math.floor(i / columns) * cell.y : 0, 0));
}

const labels = arms.length < 2 ? [] : arms.map((arm) => {
  const label = document.createElement("div");
  label.className = "label";
  label.textContent = arm.spec.name;
  $("stage").append(label);
  return label;
});

function render() {
  renderer.render(scene, camera);
  const box = $("stage").getBoundingClientRect();
  labels.forEach((label, i) => {
    label.hidden = !view.beside;
    point.set((low.x + high.x) / 2, low.y - 0.05 * data.reach, (low.z + high.z) / 2).add(arms[i].group.position).project(camera);
    label.style.left = `${((point.x + 1) / 2) * box.width}px`;
    label.style.top = `${((1 - point.y) / 2) * box.height}px`;
  });
}

function draw() {
  for (const arm of arms) arm.draw(largest);
  $("time").value = view.time;
  $("clock").textContent = `${view.time.toFixed(3)} s`;
  render();
}

function resize() {
  const box = $("stage").getBoundingClientRect();
  renderer.setSize(box.width, box.height, false);
  camera.aspect = box.width / Math.max(box.height, 1);
  camera.updateProjectionMatrix();
  render();
}

let last = null;
function tick(now) {
  if (!view.playing) return;
  if (last !== null) view.time += ((now - last) / 1000) * view.speed;
  if (view.time > end) view.time = begin;
  last = now;
  draw();
  requestAnimationFrame(tick);
}

function play(on) {
  view.playing = on;
  last = null;
  $("play").textContent = on ? "Pause" : "Play";
  if (on) requestAnimationFrame(tick);
}

$("title").textContent = data.robot;
$("time").min = begin;
$("time").max = end;
$("time").step = (end - begin) / 1000 || 1;
for (const arm of arms) {
  const item = document.createElement("span");
  const dot = document.createElement("i");
  dot.style.background = arm.spec.colour;
  item.append(dot, arm.spec.name);
  $("legend").append(item);
}
$("largest").textContent = `0 to ${largest.toExponential(1)}`;
$("besideBox").hidden = arms.length < 2;
$("beside").checked = view.beside;
// A run is shown in no less than two seconds at first, however short it is.
const speeds = [...$("speed").options].map((o) => Number(o.value));
view.speed = Math.max(speeds[0], ...speeds.filter((x) => x <= 1 && (end - begin) / x >= 2));
$("speed").value = view.speed;
$("play").onclick = () => play(!view.playing);
$("time").oninput = (e) => { play(false); view.time = Number(e.target.value); draw(); };
// Slider 0 to 100: none at the left, as computed at 20, a hundred times at the right.
$("scale").oninput = (e) => {
  const x = Number(e.target.value);
  view.scale = x <= 20 ? x / 20 : Math.pow(100, (x - 20) / 80);
  $("scaleText").textContent = `${view.scale < 10 ? view.scale.toFixed(1) : view.scale.toFixed(0)}x`;
  draw();
};
$("ghost").onchange = (e) => { view.ghost = e.target.checked; draw(); };
$("strain").onchange = (e) => { view.strain = e.target.checked; $("ramp").hidden = !view.strain; draw(); };
$("beside").onchange = (e) => { view.beside = e.target.checked; layout(); home(); draw(); };
$("speed").onchange = (e) => { view.speed = Number(e.target.value); };
$("home").onclick = () => { home(); render(); };
window.addEventListener("keydown", (e) => { if (e.code === "Space" && e.target.tagName !== "BUTTON") { e.preventDefault(); play(!view.playing); } });
new ResizeObserver(resize).observe($("stage"));
resize();
layout();
home();
draw();
// For tests and for who wants to drive the page from elsewhere.
window.flexjax = { view, draw, play, columns: () => columns, tip: (k = 0) => arms[k].pose[arms[k].L - 1].p[arms[k].S - 1].toArray() };
