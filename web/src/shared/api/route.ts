/** decoded decodes a part of an address. A part that is malformed stays as it is. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
