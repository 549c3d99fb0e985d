/** The image types that models read. */
const types = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export const isImage = (file: File) => types.includes(file.type);

/** isPicture reports whether a file is a picture of any type. Systems do not know the types of some of them. */
export const isPicture = (file: File) =>
  file.type.startsWith("image/") || /\.(png|jpe?g|gif|webp|avif|bmp|ico|tiff?|svg|heic|heif|jxl)$/i.test(file.name);

/** The limits of the images of a message, as the hub checks them. */
export const imageLimits = { count: 8, each: 15 << 18, all: 10 << 20, pixels: 8000 };

/** A picture as models read it: a JPEG image in a type and size that they accept. */
interface ForModel {
  file: File;
  /** "scaled" if it was too large, and "converted" if models do not read its type. */
  how: "scaled" | "converted";
  width: number;
  height: number;
}

/** The pictures that models read in another form. The files themselves stay as they are. */
const formsForModels = new WeakMap<File, ForModel>();

const madeForms = new WeakMap<File, ForModel>();

export function keepForModel(file: File, other: ForModel) {
  formsForModels.set(file, other);
  madeForms.set(other.file, other);
}

/** formForModel returns the form in which models read a picture, if it is another one. */
export const formForModel = (file: File): ForModel | undefined => formsForModels.get(file);

/** madeForModel returns how a file was made from a picture, if it was. */
export const madeForModel = (file: File): ForModel | undefined => madeForms.get(file);

/** filesFor returns the files of a message as they are sent to a model that reads images or not. */
export const filesFor = (files: readonly File[], readsImages: boolean): File[] =>
  files.map((f) => (readsImages && formsForModels.get(f)?.file) || f);

/** asImages returns the files that a model gets as images. It gets the names of the others. */
export function asImages(files: readonly File[]): File[] {
  let left = imageLimits.all;
  return files
    .filter(
      (f) =>
        isImage(f) &&
        !formsForModels.has(f) &&
        f.size <= imageLimits.each &&
        f.size <= left &&
        ((left -= f.size), true),
    )
    .slice(0, imageLimits.count);
}
