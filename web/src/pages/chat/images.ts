/** The image types that models read. */
const types = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export const isImage = (file: File) => types.includes(file.type);

/** The limits of the images of a message, as the hub checks them. */
export const imageLimits = { count: 8, each: 15 << 18, all: 10 << 20, pixels: 8000 };

/** asImages returns the files that a model gets as images. It gets the names of the others. */
export function asImages(files: readonly File[]): File[] {
  let left = imageLimits.all;
  return files
    .filter((f) => isImage(f) && f.size <= imageLimits.each && f.size <= left && ((left -= f.size), true))
    .slice(0, imageLimits.count);
}
