import { type DefinitionFiles, readDefinitionFiles } from './definition-files';

/** What @grpc/proto-loader makes of protos: services and types by their full names. */
export type PackageDefinition = Readonly<Record<string, object>>;

/** One method of a {@link PackageDefinition}, with the descriptors that came with it. */
export interface DefinedMethod {
  readonly service: string;
  readonly method: string;
  /** As on the wire: `/package.Service/Method`. */
  readonly path: string;
  readonly clientStreaming: boolean;
  readonly serverStreaming: boolean;
  /** Undefined where the definition comes from something that knows no options. */
  readonly options: Readonly<Record<string, unknown>> | undefined;
  readonly files: DefinitionFiles;
}

/** A method as proto-loader makes it: what of it is read here. */
interface LoadedMethod {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly requestType?: { readonly fileDescriptorProtos?: readonly Uint8Array[] };
}

/** Every method of every service of a definition, in its order. */
export function definedMethods(definition: PackageDefinition): readonly DefinedMethod[] {
  // All methods of one load share one list of files.
  const known = new Map<readonly Uint8Array[], DefinitionFiles>();
  const noFiles: readonly Uint8Array[] = [];
  return Object.values(definition)
    .flatMap((entry) => Object.values(entry) as readonly unknown[])
    .filter(isMethod)
    .map(({ path, requestStream, responseStream, options, requestType }) => {
      const protos = requestType?.fileDescriptorProtos ?? noFiles;
      const files = known.get(protos) ?? readDefinitionFiles(protos);
      known.set(protos, files);
      const [, service = '', method = ''] = path.split('/');
      const streams = { clientStreaming: requestStream, serverStreaming: responseStream };
      return { service, method, path, ...streams, options, files };
    });
}

/** Beside services a definition holds types, whose parts are no methods. */
function isMethod(part: unknown): part is LoadedMethod {
  return typeof part === 'object' && part !== null && 'path' in part && 'requestStream' in part;
}
