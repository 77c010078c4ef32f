// The token that allows orders. It comes in the address's fragment, which no server ever sees, is
// kept for this tab only, and leaves the address bar, so that nobody photographs it from there.

const KEY = "sinew-token";

/** Takes a new token from the address, if there is one. */
export function adopt(): boolean {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!found) return false;
  sessionStorage.setItem(KEY, found);
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

/** The token of this tab. */
export function token(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Forgets it: the server does not know it. */
export function forget(): void {
  sessionStorage.removeItem(KEY);
}
