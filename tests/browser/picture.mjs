// SPDX-License-Identifier: Apache-2.0
// The picture of a report in the README, from "What was found" on, by headless Chromium at two pixels a pixel.
// Usage: node picture.mjs CHROMIUM MODULES PAGE.html OUT.png [WIDTH [HEIGHT]]
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [chromium, modules, report, out, width = 960, height = 842] = process.argv.slice(2);
const require = createRequire(pathToFileURL(path.resolve(modules, "package.json")));
const browser = await require("playwright-core").chromium.launch({executablePath: chromium, args: ["--no-sandbox"]});
const page = await browser.newPage({viewport: {width: Number(width), height: 2000}, deviceScaleFactor: 2});
await page.goto(pathToFileURL(path.resolve(report)).href);
const top = (await page.locator("h2", {hasText: "What was found"}).boundingBox()).y;
const shot = await page.screenshot({clip: {x: 0, y: top - 30, width: Number(width), height: Number(height)}});
await browser.close();

// Flat colours are shorter without the filters of PNG (RFC 2083, 6): undone here, three bytes a pixel.
function unfiltered(lines, stride) {
  for (let at = 0, above = null; at < lines.length; above = at, at += stride + 1) {
    const filter = lines[at];
    lines[at] = 0;
    for (let i = 1; i <= stride; ++i) {
      const a = i > 3 ? lines[at + i - 3] : 0;
      const b = above === null ? 0 : lines[above + i];
      const c = above === null || i <= 3 ? 0 : lines[above + i - 3];
      const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
      lines[at + i] += [0, a, b, (a + b) >> 1, pa <= pb && pa <= pc ? a : pb <= pc ? b : c][filter];
    }
  }
  return lines;
}

function crc32(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; ++bit) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

function chunk(kind, data) {
  const numbers = [data.length, crc32(Buffer.concat([Buffer.from(kind), data]))].map((value) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  });
  return Buffer.concat([numbers[0], Buffer.from(kind), data, numbers[1]]);
}

let header = null;
const packed = [];
for (let at = 8, length; at < shot.length; at += length + 12) {
  length = shot.readUInt32BE(at);
  const kind = shot.toString("latin1", at + 4, at + 8);
  const data = shot.subarray(at + 8, at + 8 + length);
  if (kind === "IHDR") header = data;
  if (kind === "IDAT") packed.push(data);
}
if (header[8] !== 8 || header[9] !== 2) throw new Error("8 bits of red, green and blue are expected");
const lines = unfiltered(zlib.inflateSync(Buffer.concat(packed)), 3 * header.readUInt32BE(0));
fs.writeFileSync(out, Buffer.concat([shot.subarray(0, 8), chunk("IHDR", header),
                                     chunk("IDAT", zlib.deflateSync(lines, {level: 9})), chunk("IEND", Buffer.alloc(0))]));
