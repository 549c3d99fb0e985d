import { useEffect, useState } from "preact/hooks";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon } from "../../shared/ui";
import { isImage } from "./images";
import { LargeImage, Thumb } from "./thumbs";

export interface AttachedProps {
  files: File[];
  disabled: boolean;
  onRemove: (f: File) => void;
}

/** AttachedList lists the files of a message. */
export function AttachedList({ files, disabled, onRemove }: AttachedProps) {
  const [shown, setShown] = useState<File>();
  return (
    <ul class="chat-attached" aria-label={msg("chat.attached")}>
      {files.map((f) => (
        <li key={f.name}>
          {isImage(f) ? <FileThumb file={f} onOpen={() => setShown(f)} /> : <Icon name="file" size={14} />}{" "}
          <span class="truncate">{f.name}</span> <span class="muted nowrap">{size(f.size)}</span>
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
