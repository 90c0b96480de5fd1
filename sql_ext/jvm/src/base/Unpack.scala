package org.apache.spark.sql.sieve.base

import java.io.{ByteArrayInputStream, InputStream}
import java.nio.{ByteBuffer, LongBuffer}
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.util.Base64
import com.fasterxml.jackson.databind.JsonNode
import com.github.luben.zstd.ZstdInputStream

/** Decodes binary data in an answer of the front end. The data is compressed with Zstandard and encoded in Base64. */
object Unpack {
  def stream(node: JsonNode): InputStream =
    new ZstdInputStream(new ByteArrayInputStream(Base64.getDecoder.decode(node.asText)))

  def bytes(node: JsonNode): Array[Byte] = {
    val in = stream(node)
    try in.readAllBytes() finally in.close()
  }

  /** Decodes an array of 64-bit integers. */
  def numbers(node: JsonNode): LongBuffer = ByteBuffer.wrap(bytes(node)).order(LITTLE_ENDIAN).asLongBuffer
}
