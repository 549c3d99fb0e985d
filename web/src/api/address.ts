/** A part of an address as it was before it was put there; what cannot be read stays as it is. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
