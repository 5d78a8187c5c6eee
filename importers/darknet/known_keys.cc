// The keys that the published Darknet versions read, by section: those that matter for training only included, so that
// a warning of an unknown key means a misspelt one.
#include <algorithm>
#include <tenon/sdk/error.hpp>

#include "importers/darknet/cfg.h"

namespace tenon::darknet {
namespace {

struct KnownKeys {
  std::string_view type;
  std::string_view keys;  // separated by blanks, with one at both ends
};

constexpr std::string_view kAnySection =
    " learning_rate learning_rate_scale stopbackward onlyforward dontload dontloadscales dontsave numload truth smooth "
    "clip train_only_bn name ";

constexpr KnownKeys kKnownKeys[] = {
    {"net",
     " batch subdivisions width height channels inputs momentum decay angle saturation exposure hue learning_rate "
     "learning_rate_min burn_in max_batches policy steps scales scale step power gamma seq_scales max_crop min_crop "
     "max_ratio min_ratio center clip aspect adam B1 B2 eps time_steps track augment_speed sequential_subdivisions "
     "init_sequential_subdivisions try_fix_nan notruth random flip mosaic mosaic_bound mixup cutmix letter_box blur "
     "gaussian_noise contrastive contrastive_jit_flip contrastive_color unsupervised resize_step label_smooth_eps "
     "sgdr_cycle sgdr_mult batches_per_cycle batches_cycle_mult ema_alpha optimized_memory workspace_size_limit_MB "
     "max_chart_loss dynamic_minibatch loss_scale num_sigmas_reject_badlabels badlabels_rejection_percentage "
     "adversarial_lr attention weights_reject_freq equidistant_point show_receptive_field use_cuda_graph burnin_power "
     "cudnn_half "},
    {"convolutional",
     " filters size stride stride_x stride_y pad padding groups dilation activation batch_normalize binary xnor "
     "bin_output "
     "flipped dot antialiasing share_index use_bin_output sway rotate stretch stretch_sway deform assisted_excitation "
     "angle grad_centr reverse coordconv wait_stream stream batch_normalize_momentum cbn "},
    {"connected", " output activation batch_normalize flipped "},
    {"maxpool",
     " size stride stride_x stride_y padding pad maxpool_depth out_channels antialiasing maxpool_zero_nonmax "},
    {"avgpool", " size stride "},
    {"crop", " crop_height crop_width flip angle saturation exposure noadjust shift "},
    {"cost", " type scale ratio noobj thresh "},
    {"dropout", " probability dropblock dropblock_size_rel dropblock_size_abs dropblock_size "},
    {"softmax", " groups temperature tree spatial noloss loss "},
    {"route", " layers groups group_id stream wait_stream "},
    {"shortcut",
     " from activation alpha beta weights_type weights_normalization weights_normalizion assisted_excitation "},
    {"upsample", " stride scale "},
    {"reorg", " stride reverse flatten extra "},
    {"region",
     " anchors bias_match classes coords num softmax background jitter resize rescore thresh classfix absolute random "
     "max max_boxes tree map mask focal_loss object_scale noobject_scale class_scale coord_scale mask_scale log "
     "sqrt side "},
    {"yolo",
     " mask anchors classes num jitter resize ignore_thresh truth_thresh iou_thresh random scale_x_y nms_kind beta_nms "
     "iou_loss iou_normalizer cls_normalizer obj_normalizer delta_normalizer iou_thresh_kind max_delta new_coords "
     "focal_loss objectness_smooth label_smooth_eps counters_per_class map max map_file embedding_layer track "
     "sim_thresh dets_for_track dets_for_show track_ciou_norm track_history_size show_details show_iou "},
    {"detection",
     " classes coords rescore num side softmax sqrt jitter random reorg forced max object_scale noobject_scale "
     "class_scale coord_scale max_boxes "},
};

bool lists(std::string_view keys, const std::string& key) {
  return keys.find(" " + key + " ") != std::string_view::npos;
}

}  // namespace

void warn_of_unknown_keys(const Section& section, const Warn& warn) {
  const auto known = std::find_if(std::begin(kKnownKeys), std::end(kKnownKeys),
                                  [&](const KnownKeys& entry) { return entry.type == section.type; });
  if (known == std::end(kKnownKeys)) return;
  for (const Entry& entry : section.entries) {
    if (lists(known->keys, entry.key) || lists(kAnySection, entry.key)) continue;
    warn(section.place(entry.line) + "unknown key '" + entry.key + "' is ignored");
  }
}

}  // namespace tenon::darknet
