/** stored returns a value from the browser's storage, or null. The browser may refuse storage. */
export function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** store saves a value in the browser's storage. The value null removes it. */
export function store(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // The browser refuses storage: the value is lost when the page is closed.
  }
}
