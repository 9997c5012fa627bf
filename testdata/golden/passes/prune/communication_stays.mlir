// The other side waits for it. Tokens that nothing uses go.
// RUN[run]: opt % --pass prune
!f32 = !vhlo.tensor_v1<!vhlo.f32_v1>
!token = !vhlo.token_v1
func.func public @main(%x: !f32) -> !f32 {
  %t = "vhlo.create_token_v1"() : () -> !token
  %a = "vhlo.send_v1"(%x, %t) {channel_id = #vhlo.integer_v1<1 : i64>, channel_type = #vhlo.integer_v1<1 : i64>, is_host_transfer = #vhlo.bool_v1<false>} : (!f32, !token) -> !token
  %b, %c = "vhlo.recv_v1"(%t) {channel_id = #vhlo.integer_v1<1 : i64>, channel_type = #vhlo.integer_v1<1 : i64>, is_host_transfer = #vhlo.bool_v1<false>} : (!token) -> (!f32, !token)
  %d = "vhlo.outfeed_v1"(%x, %t) {outfeed_config = #vhlo.string_v1<"">} : (!f32, !token) -> !token
  %e, %f = "vhlo.infeed_v1"(%t) {infeed_config = #vhlo.string_v1<"">, layout = #vhlo.array_v1<[#vhlo.array_v1<[]>]>} : (!token) -> (!f32, !token)
  %u = "vhlo.create_token_v1"() : () -> !token
  return %x : !f32
}
