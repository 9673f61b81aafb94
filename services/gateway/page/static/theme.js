// Runs before the first paint, so that a chosen theme does not flash in the other one.
try {
  const chosen = localStorage.getItem("cragmesh.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is closed to us: the system's theme it is.
}
