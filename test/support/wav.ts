/** A WAV file of mono 16-bit samples: tests write what they want to be heard. */
export function wavFile(samples: Int16Array, rate: number): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples.byteLength, 40);
  return Buffer.concat([head, Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)]);
}

/** What `wavFile` and the server write: 44 bytes of header, then mono 16-bit samples. */
export function readWav(file: Buffer): { samples: Int16Array; rate: number } {
  const samples = new Uint8Array(file.subarray(44));
  return { samples: new Int16Array(samples.buffer, 0, samples.length >> 1), rate: file.readUInt32LE(24) };
}
