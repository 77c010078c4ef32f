// Light, dark, or what the system says.

import { byId } from "./dom";

const KEY = "sinew-theme";
const CHOICES = ["system", "light", "dark"];

/** Sets the theme now, at every change of the system's, and by the switch; tells `changed`. */
export function followTheme(changed: () => void): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = byId("theme");
  const apply = () => {
    const choice = chosen();
    const is_dark = choice === "dark" || (choice === "system" && dark.matches);
    document.documentElement.dataset["theme"] = is_dark ? "dark" : "light";
    button.textContent = `${is_dark ? "☾" : "☀"} ${choice}`;
    button.setAttribute("aria-label", `Theme: ${choice}; press for the next one`);
    changed();
  };
  button.addEventListener("click", () => {
    const next = (CHOICES.indexOf(chosen()) + 1) % CHOICES.length;
    localStorage.setItem(KEY, CHOICES[next] ?? "system");
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}

function chosen(): string {
  const kept = localStorage.getItem(KEY) ?? "system";
  return CHOICES.includes(kept) ? kept : "system";
}
