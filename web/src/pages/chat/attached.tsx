import { useEffect, useState } from "preact/hooks";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon } from "../../shared/ui";
import { filesFor, isImage, madeForModel } from "./images";
import { LargeImage, Thumb } from "./thumbs";

export interface AttachedProps {
  files: File[];
  /** Whether the model reads images, and gets them in another form if necessary. */
  readsImages: boolean;
  disabled: boolean;
  onRemove: (f: File) => void;
}

/** AttachedList lists the files of a message. */
export function AttachedList({ files, readsImages, disabled, onRemove }: AttachedProps) {
  const [shown, setShown] = useState<File>();
  const sent = filesFor(files, readsImages);
  return (
    <ul class="chat-attached" aria-label={msg("chat.attached")}>
      {files.map((f, i) => (
        <li key={f.name}>
          {isImage(sent[i]!) ? (
            <FileThumb file={sent[i]!} onOpen={() => setShown(sent[i])} />
          ) : (
            <Icon name="file" size={14} />
          )}{" "}
          <span class="truncate">{f.name}</span> <span class="muted nowrap">{size(sent[i]!.size)}</span>{" "}
          <Made file={sent[i]!} />
          <Button
            small
            look="quiet"
            icon="close"
            label={msg("chat.noFile", { name: f.name })}
            disabled={disabled}
            onClick={() => onRemove(f)}
          />
        </li>
      ))}
      {shown && <LargeFile file={shown} onClose={() => setShown(undefined)} />}
    </ul>
  );
}

/** Made says that a picture was changed for the model. */
function Made({ file }: { file: File }) {
  const made = madeForModel(file);
  if (!made) return null;
  const { width, height } = made;
  return <span class="muted">{msg(`chat.${made.how}ForModel`, { width: `${width}`, height: `${height}` })}</span>;
}

/** useAddress returns an address of a file for as long as the component is shown. */
function useAddress(file: File): string | undefined {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return address;
}

function FileThumb({ file, onOpen }: { file: File; onOpen: () => void }) {
  return <Thumb name={file.name} address={useAddress(file)} onOpen={onOpen} />;
}

function LargeFile({ file, onClose }: { file: File; onClose: () => void }) {
  return <LargeImage name={file.name} address={useAddress(file)} onClose={onClose} />;
}
