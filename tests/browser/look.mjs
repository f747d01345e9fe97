// SPDX-License-Identifier: Apache-2.0
// Opens report pages in headless Chromium as people would: on a phone, a tablet, a desktop, in the dark and on paper.
// Usage: node look.mjs CHROMIUM MODULES PAGE.html... [--shots FOLDER]
// Prints one JSON object {problems: [...], looked: N}; with --shots also keeps what it saw.
import fs from "node:fs";
import path from "node:path";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [chromium, modules, ...rest] = process.argv.slice(2);
const shots = rest.includes("--shots") ? rest[rest.indexOf("--shots") + 1] : null;
const pages = rest.filter((word) => word !== "--shots" && word !== shots);
const require = createRequire(pathToFileURL(path.resolve(modules, "package.json")));
const browser = await require("playwright-core").chromium.launch({executablePath: chromium, args: ["--no-sandbox"]});
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// What sticks out of the window, and text that is cut off or lower than `least` pixels. Chromium rounds heights of text in
// a drawing and scales them: 8 may be 7.9999.
function layout(least) {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const element of document.querySelectorAll("main *")) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && (box.right > width + 1 || box.left < -1))
      found.push(`${element.tagName} sticks out: ${element.textContent.trim().slice(0, 40)}`);
    if (element.tagName === "text" && box.height > 0 && box.height < least - 0.01)
      found.push(`text of ${box.height.toFixed(1)} pixels: ${element.textContent.slice(0, 20)}`);
    const drawing = element.tagName === "text" && element.ownerSVGElement.getBoundingClientRect();
    if (drawing && (box.left < drawing.left - 2 || box.right > drawing.right + 2 || box.top < drawing.top - 2))
      found.push(`a label leaves its picture: ${element.textContent.slice(0, 30)}`);
  }
  return found;
}

const problems = [];
let looked = 0;
const views = [[390, "light"], [768, "light"], [1280, "light"], [1280, "dark"]];
const context = await browser.newContext({deviceScaleFactor: 1, bypassCSP: true});
const page = await context.newPage();
page.setDefaultTimeout(300000);  // machines may be busy
page.on("request", (request) => {
  if (!request.url().startsWith("file:") && !request.url().startsWith("data:")) problems.push(`asks for ${request.url()}`);
});
for (const file of pages) {
  const name = path.basename(file, ".html");
  await page.setViewportSize({width: 1280, height: 900});
  await page.emulateMedia({media: "screen", colorScheme: "light"});
  await page.goto(pathToFileURL(path.resolve(file)).href);
  for (const details of await page.$$("details")) await details.evaluate((one) => { one.open = true; });
  await page.evaluate(axe);
  for (const [width, colours] of views) {
    await page.setViewportSize({width, height: 900});
    await page.emulateMedia({media: "screen", colorScheme: colours});
    for (const found of await page.evaluate(layout, 8)) problems.push(`${name} at ${width}: ${found}`);
    if (width === 390 || colours === "dark") {
      const result = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ["violations"]}));
      for (const one of result.violations)
        problems.push(`${name} at ${width}, ${colours}: ${one.id}: ${one.help} (${one.nodes.length}, e.g. ${one.nodes[0].html.slice(0, 120)})`);
    }
    if (shots) await page.screenshot({path: path.join(shots, `${name}-${width}-${colours}.png`), fullPage: true});
    ++looked;
  }
  // On paper, A4: what is folded is printed too.
  await page.setViewportSize({width: 680, height: 900});
  await page.emulateMedia({media: "print", colorScheme: "light"});
  for (const details of await page.$$("details")) await details.evaluate((one) => { one.open = false; });
  for (const found of await page.evaluate(layout, 11)) problems.push(`${name} in print: ${found}`);
  const hidden = await page.evaluate(() => [...document.querySelectorAll("details > :not(summary)")]
    .filter((one) => one.textContent.trim() && one.getBoundingClientRect().height === 0).length);
  if (hidden > 0) problems.push(`${name} in print: ${hidden} folded parts are not printed`);
  const pdf = await page.pdf({format: "A4"});
  if (shots) fs.writeFileSync(path.join(shots, `${name}.pdf`), pdf);
  if (!(pdf.length > 1000)) problems.push(`${name} in print: an empty document`);
  ++looked;
}
await browser.close();
console.log(JSON.stringify({problems, looked}));
