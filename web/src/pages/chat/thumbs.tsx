import { useState } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Dialog, Icon } from "../../shared/ui";
import "./thumbs.css";

/** Thumb is a small image that opens the large one. */
export function Thumb({ name, address, onOpen }: { name: string; address?: string; onOpen: () => void }) {
  const [gone, setGone] = useState<string>();
  if (gone && gone === address)
    return (
      <span class="small muted" title={name}>
        <Icon name="file" size={14} /> {msg("chat.imageGone", { name })}
      </span>
    );
  return (
    <button type="button" class="chat-thumb" aria-label={msg("chat.view", { name })} title={name} onClick={onOpen}>
      <img src={address} alt={name} loading="lazy" decoding="async" onError={() => setGone(address)} />
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
