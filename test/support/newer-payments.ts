import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CreatePaymentRequest, PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';

/** A CreatePaymentRequest of the next release. */
export interface NewerRequest extends CreatePaymentRequest {
  readonly installments: readonly number[];
}

/** The field that the next release adds: `repeated int32 installments = 70`. */
export const INSTALLMENTS = 70;

/** The payments service of the next release: its protos, and a definition that decodes the new field. */
export function newerPayments() {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
  const request = set.file.flatMap((file) => file.messageType).find(({ name }) => name === 'CreatePaymentRequest');
  request?.field.push(
    create(FieldDescriptorProtoSchema, {
      ...{ name: 'installments', jsonName: 'installments', number: INSTALLMENTS },
      ...{ label: FieldDescriptorProto_Label.REPEATED, type: FieldDescriptorProto_Type.INT32 },
    }),
  );
  const message = createFileRegistry(set).getMessage('payments.v1.CreatePaymentRequest');
  if (message === undefined) throw new Error('payments.v1.CreatePaymentRequest is missing');
  const { createPayment, ...others } = PaymentsServiceService;
  const decode = (bytes: Buffer): NewerRequest => {
    const { installments } = fromBinary(message, bytes) as unknown as Pick<NewerRequest, 'installments'>;
    return { ...CreatePaymentRequest.decode(bytes), installments };
  };
  return {
    descriptorSet: toBinary(FileDescriptorSetSchema, set),
    definition: { ...others, createPayment: { ...createPayment, requestDeserialize: decode } },
  };
}
