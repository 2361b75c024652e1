// Equations: pymdownx.arithmatex wraps them in \( \) and \[ \], KaTeX (docs/katex, part of the site) draws them.
// An equation that KaTeX cannot read stays as its source and is reported on the console, where tests/viz/test_browser.py looks.
function drawEquations() {
  for (const element of document.querySelectorAll(".arithmatex:not([data-drawn])")) {
    const source = element.textContent.trim();
    element.dataset.drawn = "";
    try {
      katex.render(source.slice(2, -2), element, { displayMode: source.startsWith("\\["), throwOnError: true, strict: "error" });
    } catch (error) {
      console.error(`${source}: ${error.message}`);
    }
  }
}
document$.subscribe(drawEquations);
