// The page of a player: asks how it goes ten times a second, and sends orders.
"use strict";

const PERIOD_MS = 100;
const HISTORY = 300;
// What each may hold: the capacities of docs/player.md.
const FILLS = [
  ["packets of video", (it) => it.fills.video_packets, 32],
  ["pictures", (it) => it.fills.pictures, 8],
  ["packets of sound", (it) => it.fills.sound_packets, 64],
  ["sound, ms", (it) => Math.round(it.fills.sound_ms), 500],
];
const COUNTS = [
  ["shown", "shown"], ["late", "late"], ["dropped", "dropped"], ["repeated", "repeated"],
  ["skipped by the decoder", "skipped"], ["broken", "broken"], ["copied", "copies"],
];

const by = (id) => document.getElementById(id);
const history = [];
let seeking = false;
let state = null;

function order(name, value) {
  const body = JSON.stringify(value === undefined ? { order: name } : { order: name, value });
  fetch("/order", { method: "POST", body }).catch(() => {});
}

function clockTime(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function figure(value) {
  return value === null || value === undefined ? "-" : value.toFixed(1);
}

function row(name, value, meter) {
  const line = document.createElement("tr");
  const cells = [name, value].map((text) => {
    const cell = document.createElement("td");
    cell.textContent = text;
    return cell;
  });
  if (meter) {
    const cell = document.createElement("td");
    cell.append(meter);
    cells.splice(1, 0, cell);
  }
  line.append(...cells);
  return line;
}

function meter(value, max) {
  const it = document.createElement("meter");
  Object.assign(it, { min: 0, max, value });
  return it;
}

function draw() {
  const canvas = by("history");
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const most = Math.max(40, ...history.map(Math.abs));
  const y = (ms) => height / 2 - (ms / most) * (height / 2 - 6);
  context.clearRect(0, 0, width, height);
  context.strokeStyle = "#8886";
  context.beginPath();
  for (const ms of [-40, 0, 40]) {
    context.moveTo(0, y(ms));
    context.lineTo(width, y(ms));
  }
  context.stroke();
  context.strokeStyle = "#2a9d5c";
  context.beginPath();
  history.forEach((ms, at) => context.lineTo((at / HISTORY) * width, y(ms)));
  context.stroke();
}

function show(it) {
  state = it;
  const ended = it.frozen_s !== null ? "frozen" : it.state;
  by("state").textContent = ended;
  by("frozen").hidden = it.frozen_s === null;
  by("frozen").textContent = `frozen for ${figure(it.frozen_s)} s: the sound goes on`;
  by("pause").textContent = it.state === "paused" ? "Play" : "Pause";
  if (!seeking && it.film_s > 0) {
    by("place").max = it.film_s;
    by("place").value = it.position_s;
  }
  by("time").textContent = `${clockTime(it.position_s)} of ${clockTime(it.film_s)}`;
  const { last, p50, p95, max, n } = it.difference_ms;
  by("difference").textContent = n > 0 ? figure(last) : "-";
  by("range").textContent =
    `P50 ${figure(p50)}, P95 ${figure(p95)}, at most ${figure(max)} ms of ${n}; lines at 40 ms`;
  history.push(last);
  if (history.length > HISTORY) history.shift();
  draw();
  const level = (value) => `${Math.max(0, 100 + (20 * Math.log10(value + 1e-5) * 100) / 60)}%`;
  by("left").style.width = level(it.sound.level[0]);
  by("right").style.width = level(it.sound.level[1]);
  by("sound").textContent = `${it.sound.device ? "sound device" : "no device: the clock alone"}, ` +
    `${it.sound.underruns} times no sound, ${figure(it.sound.silent_ms)} ms`;
  by("fills").replaceChildren(...FILLS.map(([name, value, max]) =>
    row(name, value(it), meter(value(it), max))));
  by("counts").replaceChildren(
    ...COUNTS.map(([name, key]) => row(name, it[key])),
    row("decoded in, P50 / at most, ms", `${figure(it.decode_ms.p50)} / ${figure(it.decode_ms.max)}`),
    row("points", `${it.width} x ${it.height}`));
}

async function look() {
  try {
    show(await (await fetch("/state")).json());
  } catch {
    by("state").textContent = "gone";
  }
  setTimeout(look, PERIOD_MS);
}

by("pause").addEventListener("click", () => order(state?.state === "paused" ? "play" : "pause"));
by("place").addEventListener("input", () => { seeking = true; });
by("place").addEventListener("change", () => {
  order("seek", Number(by("place").value));
  seeking = false;
});
by("speed").addEventListener("change", () => order("speed", Number(by("speed").value)));
by("picture").addEventListener("error", () =>
  setTimeout(() => { by("picture").src = "/stream.mjpeg?" + Date.now(); }, 500));
by("picture").src = "/stream.mjpeg";
look();
