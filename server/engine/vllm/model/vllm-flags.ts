/**
 * Flags of vLLM that a model's manifest may set: how much memory and how many cards it takes, and in what precision it computes. The
 * manifest comes with the model, perhaps from elsewhere; a flag beyond these could run the model's code, open files or change what listens.
 */
const withValue: readonly string[] = [
  "block-size",
  "cpu-offload-gb",
  "data-parallel-size",
  "dtype",
  "gpu-memory-utilization",
  "kv-cache-dtype",
  "kv-cache-memory-bytes",
  "max-model-len",
  "max-num-batched-tokens",
  "max-num-seqs",
  "num-gpu-blocks-override",
  "pipeline-parallel-size",
  "quantization",
  "seed",
  "stream-interval",
  "swap-space",
  "tensor-parallel-size",
];
const withoutValue: readonly string[] = [
  "async-scheduling",
  "disable-custom-all-reduce",
  "disable-log-stats",
  "enable-chunked-prefill",
  "enable-expert-parallel",
  "enable-prefix-caching",
  "enforce-eager",
  "no-async-scheduling",
  "no-enable-chunked-prefill",
  "no-enable-prefix-caching",
];

/** The first argument that a manifest may not have. */
export function findForeignArgument(args: readonly string[]): string | undefined {
  let takesValue = false;
  for (const argument of args) {
    const [, flag, value] = /^--([a-z-]+)(=.*)?$/s.exec(argument) ?? [];
    const isKnown = flag === undefined ? takesValue && !argument.startsWith("-") : isAllowed(flag, value);
    if (!isKnown) return argument;
    takesValue = flag !== undefined && value === undefined && withValue.includes(flag);
  }
  return undefined;
}

function isAllowed(flag: string, value: string | undefined): boolean {
  return withValue.includes(flag) || (value === undefined && withoutValue.includes(flag));
}

export const allowedFlags = [...withValue, ...withoutValue].map((flag) => `--${flag}`);
