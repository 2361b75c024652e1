// One run: links with their deformation, joints by kind, payloads, base, loads, shadow, path of the tip.
import {
  ArrowHelper, BoxGeometry, BufferAttribute, BufferGeometry, Color, CylinderGeometry, DoubleSide, Group, Line,
  LineBasicMaterial, LineDashedMaterial, LineSegments, Matrix4, Mesh, MeshBasicMaterial, MeshStandardMaterial, Quaternion, SphereGeometry, Vector3,
} from "three";
import { BEHIND, FLOOR, FRONT, RIGHT, UP, data, floats, place, ramp, shown, theme, view } from "./common.js";

const CIRCLE = [...Array(14).keys()].map((k) => [Math.cos((k * Math.PI) / 7), Math.sin((k * Math.PI) / 7)]);
const SIDES = { false: [[1, 1], [-1, 1], [-1, -1], [1, -1]], true: CIRCLE };
const X = new Vector3(1, 0, 0), Y = new Vector3(0, 1, 0);
export const LIGHT = UP.clone().addScaledVector(RIGHT, 0.35).addScaledVector(FRONT, BEHIND ? 2 : 0.55).normalize();

// One material for each role, so that a theme changes them all.
export const materials = {
  joint: new MeshStandardMaterial({ roughness: 0.5, metalness: 0.25 }),
  load: new MeshStandardMaterial({ roughness: 0.45, metalness: 0.2 }),
  base: new MeshStandardMaterial({ roughness: 0.8 }),
  shadow: new MeshBasicMaterial({ side: DoubleSide, polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 1 }),
  grid: new LineBasicMaterial(),
};
export function paint() {
  for (const [role, key] of [["joint", "joint"], ["load", "load"], ["base", "base"], ["shadow", "shadow"], ["grid", "line"]]) materials[role].color.set(theme[key]);
}

const poses = (stations) => data.links.map(() => ({ p: Array.from({ length: stations }, () => new Vector3()), r: Array.from({ length: stations }, () => new Quaternion()) }));

export class Arm {
  constructor(spec, scene) {
    this.spec = spec;
    [this.T, this.L, this.S] = spec.shape;
    this.frames = floats(spec.frames);
    this.deflection = floats(spec.deflection);
    this.strain = floats(spec.strain);
    this.colour = new Color();
    this.group = new Group();
    scene.add(this.group);
    this.shadows = [];
    this.pose = poses(this.S);
    this.links = data.links.map((link) => this.#makeLink(link));
    this.joints = data.joints.map((joint, k) => this.#makeJoint(joint, spec.joints[k]));
    this.payloads = data.payloads.map((payload) => this.#makePayload(payload));
    this.loads = spec.loads.map((load) => this.#makeLoad(load));
    const trace = new BufferGeometry();
    this.tracePoints = new Float32Array(3 * (this.T + 1));
    trace.setAttribute("position", new BufferAttribute(this.tracePoints, 3));
    this.trace = new Line(trace, new LineBasicMaterial({ transparent: true, opacity: 0.55 }));
    this.trace.frustumCulled = false;
    for (let t = 0; t < this.T; t++) {
      const o = ((t * this.L + this.L - 1) * this.S + this.S - 1) * 7;
      this.tracePoints.set(this.frames.subarray(o, o + 3), 3 * t);
    }
    this.group.add(this.trace);
  }

  // Every point that the camera must show.
  *points() {
    for (let o = 0; o < this.frames.length; o += 7) yield [this.frames[o], this.frames[o + 1], this.frames[o + 2]];
    yield* this.#arrowEnds();
    for (const { seat } of this.joints) if (seat) for (let o = 0; o < seat.length; o += 7) yield [seat[o], seat[o + 1], seat[o + 2]];
  }

  *#arrowEnds() {
    const q = new Quaternion(), v = new Vector3();
    for (const { load, wrench } of this.loads) {
      const k = Math.min(Math.round(place(data.stations, load.s)[0]), this.S - 1);
      let most = 0;
      for (let o = 0; o < wrench.length; o += 6) most = Math.max(most, Math.hypot(wrench[o], wrench[o + 1], wrench[o + 2]));
      for (let t = 0; t < this.T && most > 0; t++) {
        const o = ((t * this.L + load.link) * this.S + k) * 7;
        v.set(wrench[6 * t], wrench[6 * t + 1], wrench[6 * t + 2]).multiplyScalar((0.3 * data.reach) / most);
        if (load.follows) v.applyQuaternion(q.set(this.frames[o + 4], this.frames[o + 5], this.frames[o + 6], this.frames[o + 3]));
        yield [this.frames[o] + v.x, this.frames[o + 1] + v.y, this.frames[o + 2] + v.z];
      }
    }
  }

  recolour() {
    this.colour.set(shown(this.spec.colour));
    this.trace.material.color.copy(this.colour);
  }

  // The floor below this run: a grid with lines at a round distance.
  makeFloor(centre, a, b, sizeA, sizeB, step) {
    const lines = [], corner = new Vector3();
    const na = Math.ceil(sizeA / 2 / step), nb = Math.ceil(sizeB / 2 / step);
    const put = (i, j) => lines.push(...corner.copy(centre).addScaledVector(a, i * step).addScaledVector(b, j * step).toArray());
    for (let i = -na; i <= na; i++) { put(i, -nb); put(i, nb); }
    for (let j = -nb; j <= nb; j++) { put(-na, j); put(na, j); }
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(lines), 3));
    this.floor = new LineSegments(geometry, materials.grid);
    this.group.add(this.floor);
    // Points move along the light onto the floor: p - ((p - centre).n / l.n) l.
    const n = FLOOR, k = 1 / LIGHT.dot(n), d = centre.dot(n) - 0.002 * data.reach;
    const row = (l, e) => [(e === 0) - k * l * n.x, (e === 1) - k * l * n.y, (e === 2) - k * l * n.z, k * d * l];
    this.onFloor = new Matrix4().set(...row(LIGHT.x, 0), ...row(LIGHT.y, 1), ...row(LIGHT.z, 2), 0, 0, 0, 1);
    for (const shadow of this.shadows) this.group.add(shadow);
  }

  #shadowOf(mesh) {
    const shadow = new Mesh(mesh.geometry, materials.shadow);
    shadow.matrixAutoUpdate = false;
    shadow.frustumCulled = false;
    shadow.userData = mesh;
    shadow.renderOrder = -1;
    this.shadows.push(shadow);
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
    const mesh = new Mesh(geometry, new MeshStandardMaterial({ vertexColors: true, side: DoubleSide, flatShading: true, roughness: 0.55, metalness: 0.1 }));
    mesh.frustumCulled = false;
    this.#shadowOf(mesh);
    const line = new BufferGeometry();
    line.setAttribute("position", new BufferAttribute(new Float32Array(6), 3));
    const ghost = new Line(line, new LineDashedMaterial({ color: 0x888888, dashSize: 0.02 * data.reach, gapSize: 0.012 * data.reach }));
    ghost.frustumCulled = false;
    this.group.add(mesh, ghost);
    return { link, mesh, ghost, sides };
  }

  // A joint in the axes of the child's section; r: half its size.
  #makeJoint(joint, motion) {
    const link = data.links[joint.link];
    const thick = Math.max(...link.half[joint.end === "tip" ? this.S - 1 : 0]);
    const r = Math.min(Math.max(1.5 * thick, 0.011 * data.reach), 0.035 * data.reach);
    const group = new Group();
    const add = (geometry, axis, from = Y) => {
      const mesh = new Mesh(geometry, materials.joint);
      if (axis) mesh.quaternion.setFromUnitVectors(from, axis);
      group.add(mesh);
      return mesh;
    };
    const axis = new Vector3(...joint.axis), axis2 = new Vector3(...joint.axis2);
    const pin = (length, width, along) => add(new CylinderGeometry(width * r, width * r, length * r, 24), along);
    // Sections may be wider along the axis than the pin is long.
    const long = Math.max(2.4, (2.3 * thick) / r);
    switch (joint.kind) {
      case "revolute": pin(long, 1, axis); pin(1.15 * long, 0.45, axis); break;
      case "universal": pin(2.6, 0.6, axis); pin(2.6, 0.6, axis2); add(new SphereGeometry(0.8 * r, 20, 14)); break;
      case "spherical": add(new SphereGeometry(1.25 * r, 24, 16)); break;
      case "prismatic": add(new BoxGeometry(3 * r, 1.7 * r, 1.7 * r), axis, X); add(new BoxGeometry(4.4 * r, 0.7 * r, 0.7 * r), axis, X); break;
      case "sliding": case "telescope":
        // A sleeve around the link: four plates, open at both ends.
        for (const [y, z] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
          const plate = add(new BoxGeometry(3.4 * r, y ? 0.5 * r : 2.9 * r, y ? 2.9 * r : 0.5 * r));
          plate.position.set(0, 1.2 * r * y, 1.2 * r * z);
        }
        break;
      case "fixed": add(new BoxGeometry(0.9 * r, 1.9 * r, 1.9 * r)); break;
      default: add(new SphereGeometry(0.5 * r, 12, 8));
    }
    this.group.add(group);
    const seat = motion.seat ? floats(motion.seat) : null;
    let base = null;
    if (seat && joint.kind !== "free") {
      base = new Mesh(new CylinderGeometry(1.1 * r, 1.9 * r, 0.055 * data.reach, 28), materials.base);
      this.#shadowOf(base);
      this.group.add(base);
    }
    return { joint, group, r, seat, base, at: motion.at ? floats(motion.at) : null };
  }

  #makePayload(payload) {
    const mesh = new Mesh(new SphereGeometry((0.011 + 0.013 * payload.size) * data.reach, 24, 16), materials.load);
    this.#shadowOf(mesh);
    this.group.add(mesh);
    // A payload beside its link hangs on a rod.
    let rod = null;
    if (Math.hypot(...payload.offset) > 1e-3 * data.reach) {
      rod = new Mesh(new CylinderGeometry(0.0035 * data.reach, 0.0035 * data.reach, 1, 12), materials.load);
      this.#shadowOf(rod);
      this.group.add(rod);
    }
    return { payload, mesh, rod };
  }

  #makeLoad(load) {
    const make = (colour) => {
      const arrow = new ArrowHelper(X, new Vector3(), 1, colour);
      arrow.visible = false;
      this.group.add(arrow);
      return arrow;
    };
    const moment = make("#9467bd");
    const second = new Mesh(moment.cone.geometry, moment.cone.material);
    moment.add(second);
    return { load, wrench: floats(load.wrench), force: make("#d62728"), moment, second };
  }

  #read(i, link, s, p, q, d) {
    const o = ((i * this.L + link) * this.S + s) * 7, e = ((i * this.L + link) * this.S + s) * 3;
    p.set(this.frames[o], this.frames[o + 1], this.frames[o + 2]);
    q.set(this.frames[o + 4], this.frames[o + 5], this.frames[o + 6], this.frames[o + 3]);
    d.set(this.deflection[e], this.deflection[e + 1], this.deflection[e + 2]);
  }

  // World poses of all stations with the deformation of every link scaled; scale 0 is the rigid arm at the same joint coordinates.
  shape(time, scale, out) {
    const [i, f] = place(this.spec.times, time);
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
    const put = (l) => {
      if (done[l]) return;
      done[l] = true;
      const { parent, slides } = data.links[l];
      const base = actual[l][0];
      const inverse = base.q.clone().invert();
      let bp = base.p.clone(), bq = base.q.clone();
      if (parent >= 0) {
        put(parent);
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
    for (let l = 0; l < this.L; l++) put(l);
    return out;
  }

  #nearest(stations, point) {
    let best = 0;
    stations.forEach((a, k) => { if (a.p.distanceTo(point) < stations[best].p.distanceTo(point)) best = k; });
    return best;
  }

  // The drawn pose at a fraction of a link's length.
  #section(link, s, p, q) {
    const [k, f] = place(data.stations, s);
    const { p: ps, r: rs } = this.pose[link];
    const next = Math.min(k + 1, this.S - 1);
    p.lerpVectors(ps[k], ps[next], f);
    q.slerpQuaternions(rs[k], rs[next], f);
  }

  draw(largest, largestLoad) {
    const pose = this.shape(view.time, view.scale, this.pose);
    const [i, f] = place(this.spec.times, view.time);
    this.#drawLinks(pose, i, largest);
    this.#drawParts(i, f);
    this.#drawLoads(i, f, largestLoad);
    if (view.ghost) this.#drawGhost();
    for (const part of this.links) part.ghost.visible = view.ghost;
    this.trace.visible = view.trace && view.scale === 1;
    // The path up to here ends at the tip between two samples.
    const shown = this.trace.geometry.attributes.position;
    const whole = this.whole ??= this.tracePoints.slice();
    this.tracePoints.set(whole);
    this.tracePoints.set(pose[this.L - 1].p[this.S - 1].toArray(), 3 * (i + 1));
    this.trace.geometry.setDrawRange(0, i + 2);
    shown.needsUpdate = true;
    for (const shadow of this.shadows) {
      shadow.userData.updateMatrix();
      shadow.matrix.multiplyMatrices(this.onFloor, shadow.userData.matrix);
    }
  }

  #drawLinks(pose, i, largest) {
    const colour = new Color(), y = new Vector3(), z = new Vector3();
    this.links.forEach((part, l) => {
      const position = part.mesh.geometry.attributes.position, colours = part.mesh.geometry.attributes.color;
      const n = part.sides.length;
      for (let s = 0; s < this.S; s++) {
        const half = part.link.half[s];
        const p = pose[l].p[s], r = pose[l].r[s];
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
    });
  }

  #drawParts(i, f) {
    const q0 = new Quaternion(), q1 = new Quaternion(), p1 = new Vector3();
    for (const { joint, group, r, seat, base, at } of this.joints) {
      let s = joint.end === "tip" ? 1 : 0;
      if (at) s = Math.min(Math.max(at[i] + f * (at[Math.min(i + 1, this.T - 1)] - at[i]), 0), 1);
      this.#section(joint.link, s, group.position, group.quaternion);
      if (!base) continue;
      const last = seat.length / 7 - 1;
      const a = 7 * Math.min(i, last), b = 7 * Math.min(i + 1, last);
      base.position.set(seat[a], seat[a + 1], seat[a + 2]).lerp(p1.set(seat[b], seat[b + 1], seat[b + 2]), f);
      // How far the base has rotated since the start; it stands upright then.
      q0.set(seat[4], seat[5], seat[6], seat[3]).invert();
      q1.set(seat[a + 4], seat[a + 5], seat[a + 6], seat[a + 3]).multiply(q0);
      base.quaternion.setFromUnitVectors(Y, FLOOR).premultiply(q1);
      base.position.addScaledVector(p1.copy(FLOOR).applyQuaternion(q1), -0.0275 * data.reach - 0.8 * r);
    }
    for (const { payload, mesh, rod } of this.payloads) {
      this.#section(payload.link, payload.s, mesh.position, q0);
      p1.set(...payload.offset).applyQuaternion(q0);
      if (rod) {
        rod.position.copy(mesh.position).addScaledVector(p1, 0.5);
        rod.scale.y = p1.length();
      }
      mesh.position.add(p1);
      if (rod) rod.quaternion.setFromUnitVectors(Y, p1.normalize());
    }
  }

  #drawLoads(i, f, largest) {
    const j = Math.min(i + 1, this.T - 1), q = new Quaternion(), p = new Vector3(), v = new Vector3();
    for (const { load, wrench, force, moment, second } of this.loads) {
      this.#section(load.link, load.s, p, q);
      [force, moment].forEach((arrow, part) => {
        const at = (k, e) => wrench[6 * k + 3 * part + e];
        v.set(...[0, 1, 2].map((e) => at(i, e) + f * (at(j, e) - at(i, e))));
        const size = v.length();
        arrow.visible = view.loads && size > 1e-9 * largest[part] && size > 0;
        if (!arrow.visible) return;
        if (load.follows) v.applyQuaternion(q);
        const length = data.reach * (0.06 + 0.24 * (size / largest[part])), head = 0.035 * data.reach;
        arrow.position.copy(p);
        arrow.setDirection(v.normalize());
        arrow.setLength(length, head, 0.6 * head);
        if (part) { second.scale.copy(arrow.cone.scale); second.position.set(0, length - 0.8 * head, 0); }
      });
    }
  }

  #drawGhost() {
    const rigid = this.ghostPose ??= poses(this.S);
    this.shape(view.time, 0, rigid);
    this.links.forEach((part, l) => {
      const line = part.ghost.geometry.attributes.position;
      line.setXYZ(0, ...rigid[l].p[0]);
      line.setXYZ(1, ...rigid[l].p[this.S - 1]);
      line.needsUpdate = true;
      part.ghost.computeLineDistances();
    });
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
