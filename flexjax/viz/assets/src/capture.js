// Pictures and videos of the page: the scene with its names and the time, and the curves below.
import { $, data, theme, view } from "./common.js";

export class Camera {
  constructor(canvas, labels, plot) {
    Object.assign(this, { canvas, labels, plot, sheet: document.createElement("canvas"), recorder: null });
    this.pen = this.sheet.getContext("2d");
  }

  // Draw everything on one sheet. The scene must have been drawn in the same task.
  compose(fixed = false) {
    const { canvas, pen, sheet } = this;
    const box = canvas.getBoundingClientRect(), ratio = canvas.width / Math.max(box.width, 1);
    const below = this.plot.group ? $("plot").getBoundingClientRect().height : 0;
    if (!fixed) {
      // Video codecs take even numbers of pixels.
      sheet.width = 2 * Math.round(canvas.width / 2);
      sheet.height = 2 * Math.round((canvas.height + below * ratio) / 2);
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = theme.back;
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.drawImage(canvas, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = theme.text;
    pen.font = "600 14px system-ui, sans-serif";
    pen.textBaseline = "top";
    pen.textAlign = "left";
    pen.fillText(data.robot, 12, 10);
    pen.textAlign = "right";
    pen.font = "14px system-ui, sans-serif";
    pen.fillText(`${view.time.toFixed(3)} s`, box.width - 12, 10);
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    for (const label of this.labels) if (!label.hidden) pen.fillText(label.textContent, parseFloat(label.style.left), parseFloat(label.style.top));
    if (this.labels.length && !view.beside) {
      data.arms.forEach((arm, k) => {
        pen.textAlign = "left";
        pen.fillStyle = arm.colour;
        pen.fillText(arm.name, 12, 32 + 17 * k);
      });
    }
    if (below) {
      pen.translate(0, box.height);
      this.plot.paint(pen, box.width, below);
    }
    return sheet;
  }

  picture() {
    this.compose().toBlob((blob) => save(blob, `${name()}.png`), "image/png");
  }

  // Record until `stop`; `frame` is to be called after every drawn frame.
  record(finished) {
    const kind = ["video/mp4;codecs=avc1", "video/webm;codecs=vp9", "video/webm"].find((k) => window.MediaRecorder?.isTypeSupported(k));
    if (!kind) throw new Error("This browser cannot record videos; `flexjax view run.nc --out arm.mp4` writes one.");
    this.compose();
    const parts = [];
    this.recorder = new MediaRecorder(this.sheet.captureStream(30), { mimeType: kind, videoBitsPerSecond: 8e6 });
    this.recorder.ondataavailable = (e) => parts.push(e.data);
    this.recorder.onstop = () => {
      this.recorder = null;
      save(new Blob(parts, { type: kind.split(";")[0] }), `${name()}.${kind.includes("mp4") ? "mp4" : "webm"}`);
      finished();
    };
    this.recorder.start();
  }

  frame() {
    if (this.recorder) this.compose(true);
  }

  stop() {
    if (this.recorder?.state === "recording") this.recorder.stop();
  }
}

const name = () => data.robot.replace(/[^\w.-]+/g, "-") || "arm";

function save(blob, file) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
