// A recorded run that is in the page itself: `sinew replay FILE --page OUT` made the page. For its
// format see kinds/services/src/dashboard/recorded.rs.

import { byId } from "./dom";
import type { Text } from "./protocol";

/** A trace with the values of all its cycles. */
export interface WholeTrace {
  name: string;
  unit: string;
  labels: string[];
  times_s: Float64Array;
  values: Float32Array;
}

/** What the dashboard would have said, and when. */
export interface Said {
  at_ms: number;
  message: Text | ArrayBuffer;
}

interface Head {
  made_by: string;
  machine: string;
  recorded_unix_ms: number;
  length_ms: number;
  cut: string | null;
  traces: { name: string; unit: string; labels: string[] }[];
  frames: string;
  cycles: string;
}

/** A text begins with this; a binary message begins with a small number. */
const BRACE = 0x7b;

export class Recording {
  private constructor(private readonly head: Head) {}

  /** The recording in this page, if there is one. */
  static find(): Recording | null {
    const text = document.getElementById("recording")?.textContent;
    if (!text) return null;
    // The scope goes where a live page has domains and events, of which a recording knows nothing.
    document.querySelector(".columns > .column:nth-child(2)")?.append(byId("scope"));
    return new Recording(JSON.parse(text) as Head);
  }

  get length_ms(): number {
    return this.head.length_ms;
  }

  /** Names of the traces that have the values of all cycles. */
  get traces(): string[] {
    return this.head.traces.map(({ name }) => name);
  }

  /** When and where it was recorded, for people. */
  get says(): string {
    const { recorded_unix_ms, machine, cut } = this.head;
    const when = new Date(recorded_unix_ms).toISOString().slice(0, 16).replace("T", " ");
    return `${when} UTC, on machine '${machine}'.${cut ? ` ${cut}.` : ""}`;
  }

  /** Everything that was said, in order. */
  async said(): Promise<Said[]> {
    const bytes = await unpacked(this.head.frames);
    const view = new DataView(bytes);
    const all: Said[] = [];
    for (let at = 0; at + 8 <= bytes.byteLength; ) {
      const [at_ms, length] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
      const message = bytes.slice(at + 8, at + 8 + length);
      const isText = view.getUint8(at + 8) === BRACE;
      all.push({ at_ms, message: isText ? (JSON.parse(new TextDecoder().decode(message)) as Text) : message });
      at += 8 + length;
    }
    return all;
  }

  /** The traces with all their values. */
  async whole(): Promise<WholeTrace[]> {
    const view = new DataView(await unpacked(this.head.cycles));
    let at = 0;
    return this.head.traces.map((head) => {
      const [count, from] = [view.getUint32(at, true), at + 4];
      at = from + 8 * count;
      return {
        ...head,
        times_s: Float64Array.from({ length: count }, (_, i) => view.getUint32(from + 8 * i, true) / 1e6),
        values: Float32Array.from({ length: count }, (_, i) => view.getFloat32(from + 8 * i + 4, true)),
      };
    });
  }
}

async function unpacked(text: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
