// Equations of the theory pages: pymdownx.arithmatex wraps them, MathJax draws them.
window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]], processEscapes: true, processEnvironments: true },
  options: { ignoreHtmlClass: ".*|", processHtmlClass: "arithmatex" },
};
if (typeof document$ !== "undefined") {
  document$.subscribe(() => {
    MathJax.startup?.output?.clearCache?.();
    MathJax.typesetClear?.();
    MathJax.texReset?.();
    MathJax.typesetPromise?.();
  });
}
