/** The image types that models read. */
const types = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export const isImage = (file: File) => types.includes(file.type);

/** The limits of the images of a message, as the hub checks them. */
const limits = { count: 8, each: 5 << 20, all: 10 << 20 };

/** asImages returns the files that a model gets as images. It gets the names of the others. */
export function asImages(files: readonly File[]): File[] {
  let all = 0;
  return files
    .filter((f) => isImage(f) && f.size <= limits.each && (all += f.size) <= limits.all)
    .slice(0, limits.count);
}
