// The token that allows orders. It comes in the fragment of the address, which no server ever sees.
// It is kept for this tab only, and removed from the address bar, so that nobody photographs it
// there.

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

/** Forgets the token, because the server does not know it. */
export function forget(): void {
  sessionStorage.removeItem(KEY);
}
