import { useState } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Dialog } from "../../shared/ui";

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

/** Thumb is a small image that opens the large one. */
export function Thumb({ name, address, onOpen }: { name: string; address?: string; onOpen: () => void }) {
  return (
    <button type="button" class="chat-thumb" aria-label={msg("chat.view", { name })} title={name} onClick={onOpen}>
      <img src={address} alt={name} loading="lazy" decoding="async" />
    </button>
  );
}

/** LargeImage shows an image in a dialog. */
export function LargeImage({ name, address, onClose }: { name: string; address?: string; onClose: () => void }) {
  return (
    <Dialog wide title={name} onClose={onClose}>
      <img class="chat-picture" src={address} alt={name} />
    </Dialog>
  );
}

type Image = Schema["SessionImage"];

/** MessageImages shows the images of a message. */
export function MessageImages({ session, images }: { session: string; images: readonly Image[] }) {
  const [shown, setShown] = useState<Image>();
  const address = (i: Image) => `/api/v1/sessions/${session}/images/${i.ref ?? ""}`;
  const name = (i: Image) => i.name ?? msg("chat.image");
  return (
    <div class="chat-thumbs">
      {images.map((i, n) => (
        <Thumb key={n} name={name(i)} address={address(i)} onOpen={() => setShown(i)} />
      ))}
      {shown && <LargeImage name={name(shown)} address={address(shown)} onClose={() => setShown(undefined)} />}
    </div>
  );
}
