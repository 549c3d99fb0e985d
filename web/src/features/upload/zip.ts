/** pack returns a ZIP of files. */
export async function pack(files: [path: string, File][]): Promise<Blob> {
  const { zip } = await import("fflate");
  const tree: Record<string, Uint8Array> = {};
  for (const [path, f] of files) tree[path] = new Uint8Array(await f.arrayBuffer());
  return new Promise((resolve, reject) =>
    zip(tree, { level: 6 }, (error, data) =>
      error ? reject(error) : resolve(new Blob([data as Uint8Array<ArrayBuffer>], { type: "application/zip" })),
    ),
  );
}

/** Directories that no upload needs. */
const ignored = [".git", "node_modules"];

/** isIgnored reports whether a file of a folder is not uploaded. */
export const isIgnored = (path: string) => path.split("/").some((part) => ignored.includes(part));
